"""Σ a b K g / Σ a b K where a itself has errors, or is so small that products with it underflow."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from flint import arb, ctx
from tampered import Tampered

import sumformer.theorems.alberti_2023.compile.compiler as compiler
from sumformer.certificates.checker import check
from sumformer.certificates.witness import Witness
from sumformer.targets import to_source
from sumformer.theorems.construction import construct, load

INNER = "mean(exp(-(x-y)**2)*y*mean(exp(x*y)))/mean(exp(-(x-y)**2))"


def test_an_inner_mean_that_is_off_is_seen_in_the_outer_quotient(tmp_path, monkeypatch):
    """K̃ of the inner mean is moved by 0.3, before it is compiled: so is N."""
    honest = compiler.sums_route

    def moved(f, epsilon, arithmetic):
        result = honest(f, epsilon, arithmetic)
        kernels = dict(result.plan.kernels)
        for node, plan in kernels.items():
            if "x[0]*y[0]" in to_source(node):
                cut = plan.truncation
                coefficients = cut.coefficients.copy()
                coefficients[(0,) * coefficients.ndim] += 0.3
                cut = replace(cut, coefficients=coefficients, dropped=cut.dropped + 0.3)
                kernels[node] = replace(plan, truncation=cut)
        return replace(result, plan=replace(result.plan, kernels=kernels))

    monkeypatch.setattr(compiler, "sums_route", moved)
    construct(INNER, 1e-2, n=5, architecture="performer").save(tmp_path)
    found, made, X = check(tmp_path), load(tmp_path), torch.ones(1, 5, 1, dtype=torch.float64)
    assert not found.verified
    assert found.bound >= float((made.network(X) - made.target(X)).abs().max()) > 0.2


def test_a_compiled_quotient_around_a_mean_is_verified(tmp_path):
    construct(INNER, 1e-2, n=5, architecture="performer").save(tmp_path)
    assert check(tmp_path).verified


@pytest.mark.parametrize("s", [1, 8, 64])
def test_a_local_variance_is_verified(tmp_path, s):
    """The mean inside is approximated too: its error is none of rounding."""
    K = f"exp(-{s}*(x-y)**2)"
    construct(f"sum({K}*(y-sum({K}*y)/sum({K}))**2)/sum({K})", 1e-2, n="..9").save(tmp_path)
    assert check(tmp_path).verified


@pytest.mark.parametrize(("scale", "s"), [("1e-25", 1), ("1e-25", 64), ("1e-30", 1)])
def test_a_small_constant_cancels(tmp_path, scale, s):
    K = f"{scale}*exp(-{s}*(x-y)**2)"
    construct(f"sum({K}*y)/sum({K})", 1e-2, n="..10", dtype="float32").save(tmp_path)
    assert check(tmp_path).verified


def test_products_that_underflow_are_counted_as_they_are(tmp_path):
    """a_t V_t is subnormal, where a_t is far smaller than the denominator's; 10²⁰ times the quotient shows it."""
    kernel = "exp(-(x-y)**2)"
    near = f"777*(sum(exp(-1+x)*exp(-3+x)*exp(-2+y)*{kernel}*y)/sum(exp(-1+x)*exp(-2+y)*{kernel}))"
    construct(near, 1e-8, n="..10", route="sums").save(tmp_path / "net")
    moves = {"777*": "1e20*", "exp(-1 + x)": "exp(-230 + x)", "exp(-2 + y)": "exp(-461 + y)", "*exp(-1.5)": ""}
    moves |= {"exp(-3 + x)": "exp(-46 + x)", "exp(-0.5 + (x[0] - 0.5))": "exp(-229.5 + (x[0] - 0.5))"}
    moves |= {"exp(-2.5 + (x[0] - 0.5))": "exp(-45.5 + (x[0] - 0.5))"}

    def far(text):
        for old, new in moves.items():
            text = text.replace(old, new)
        return text

    def configure(config):
        moved = json.loads(far(json.dumps(config)))
        moved["channels"][0]["factor"] += "*exp(-460.5)"  # from the own factors, so that a_t is small and b is too
        config.clear()
        config.update(moved)

    forged = Tampered(tmp_path / "net", tmp_path / "forged").edit("config", configure)
    forged.edit("certificate", lambda c: c.update(target=far(c["target"])))
    made, found = load(forged.folder), check(forged.folder)
    X = torch.rand(64, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with ctx.workprec(300):
        wanted = [Witness(made.target, x, (1, 1, 1), (0.0,), (0.0,)).balls(arb)[0] for x in X]
        errors = [float(abs(w - arb(float(got)))) for w, got in zip(wanted, made.network(X)[:, 0, 0], strict=True)]
    assert max(errors) > 1e-5
    assert found.bound >= max(errors)
    assert not found.verified

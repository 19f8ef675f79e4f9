"""False certificates and false "verified" found in review: each case must be refused, or its bound must hold."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampered import put, rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.ellipse import remainder
from sumformer.errors import RefusedError, SumformerError
from sumformer.targets import to_source
from sumformer.targets.target import target as make_target
from sumformer.theorems.construction import load

NAMES = ("interpolation remainder", "dropped and rounded coefficients", "rounding")
KINDS = ("proved", "enclosed", "rounding")


# ---- construct: numbers out of the range of the arithmetic

UNDERFLOW = [
    ("1e8*(1e38*mean(1e-46*y))", "float32", "0:1", 1.0, 1.0),  # the weight 1e-46 of p is stored as 0
    ("1e10*(1e308*mean(1e-318*y))", "float64", "0:1", 1.0, 1.0),  # a subnormal weight has no relative accuracy
    ("1e15*(1e15*(1e15*mean(y**3)))", "float32", "0:1e-15", 9e-16, 0.729),
    ("1e4*(1e38*mean(1e-42*y))", "float32", "0:1", 1.0, 1.0),
]
BEYOND = [
    ("mean(1e19*(2e19*y))", "0:5e-39"),  # 1/radius is inf in float32: T_1 is a sign, at the centre 0·inf
    ("mean(y/1e30)/1e9", "0:1e39"),  # the centre is inf in float32
]


@pytest.mark.parametrize(("source", "dtype", "box", "token", "value"), UNDERFLOW)
def test_numbers_outside_the_arithmetic_are_counted(
    source: str, dtype: str, box: str, token: float, value: float
) -> None:
    c = sumformer.construct(source, 1e-3, dtype=dtype, n=1, box=box)
    found = float(c(torch.tensor([[[token]]], dtype=getattr(torch, dtype))))
    assert abs(found - value) <= c.certificate.total + 1e-6 * (dtype == "float32") * abs(value)


@pytest.mark.parametrize(("source", "box"), BEYOND)
def test_a_box_outside_float32_is_refused_in_it(source: str, box: str) -> None:
    with pytest.raises(RefusedError):
        sumformer.construct(source, 1e-3, dtype="float32", n=1, box=box)


def test_a_box_too_small_for_float64_is_refused_cleanly() -> None:
    with pytest.raises(SumformerError):
        sumformer.construct("mean(1e300*(1e10*y))", 1e-3, n=1, box="0:1e-310")


# ---- Construction.__call__: weights


def test_negative_weights_are_refused() -> None:
    c = sumformer.construct("mean(exp(x*y))", 1e-6)
    X = torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)
    with pytest.raises(SumformerError):
        c(X, weights=torch.tensor([[1e9, 1 - 1e9]], dtype=torch.float64))


def test_padding_is_zero_with_weights_too() -> None:
    c = sumformer.construct("mean(exp(x*y))", 1e-6)
    X = torch.tensor([[[0.0], [1.0], [math.nan]]], dtype=torch.float64)
    mask, w = torch.tensor([[1, 1, 0]]), torch.ones(1, 3, dtype=torch.float64)
    assert float(c(X, weights=w, attention_mask=mask)[0, 2]) == 0.0


# ---- check: forged files


def test_an_exponent_error_above_700_is_not_cut_off(tmp_path: Path) -> None:
    """e^v(e^e − 1) with e cut to 700: N = e^100 was verified at 1e-16 for f = e^{−999}."""
    c = sumformer.construct("exp(mean(sin(x*y)) - 1000)", 1e-3)
    c.save(tmp_path)
    certificate, config = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("certificate", "config"))
    config["products"][0]["support"], config["channels"][0]["support"] = [[0]], []
    config["kernels"][0]["x_degrees"] = config["kernels"][0]["y_degrees"] = [0]
    certificate["latent_dimension"] = 0
    certificate["constants"]["kernels"][0] |= {"dropped": 1100.0, "degree": 0}
    _forge(tmp_path, certificate, config, np.array([[1100.0]]))
    found = load(tmp_path)(torch.full((1, 1, 1), 0.5, dtype=torch.float64))
    assert float(found) > 1e40
    verdict = check(tmp_path)
    assert not verdict.verified or verdict.claimed > float(found)  # e^{−999} is nothing beside it


def test_an_ellipse_whose_power_underflows_is_not_a_remainder_of_0(tmp_path: Path) -> None:
    """ρ^−N = 0 in float64 while M = 1e307: T_64, which vanishes at the 64 nodes, was left out for free."""
    inner = "y"
    for _ in range(4):
        inner = f"(2*{inner}**2-1)"  # T_16
    f, kernel = make_target(f"mean({inner}**4)", box="-1:1"), f"(0.000001*{inner})**4"  # (T_64 + 4T_32 + 3)/8e24
    rho, degree, maxima = 140000.0, 63, (1e-24, 1e307)
    source = to_source(f.countless)
    term = {"own": str(10**24), "channel": 0, "polynomial": [[[0], "1"]], "product": 0}
    config = {
        "type": "ExpressionSumformer",
        "expression": source,
        "d": 1,
        "centre": ["0"],
        "radius": ["1"],
        "arithmetic": "float64",
        "group": 1024,
        "channels": [{"factor": "1", "support": [[32]]}],
        "kernels": [{"expression": kernel, "coordinates": [0], "x_degrees": [0], "y_degrees": [32]}],
        "products": [{"kernels": [0], "support": [[0], [32]]}],
        "reductions": [{"reduction": source, "components": [[term]]}],
    }
    sumformer.construct("mean(y)", 1e-3).save(tmp_path)
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    certificate |= {"target": f.source, "box": str(f.box), "tokens": str(f.tokens), "route": "sums"}
    certificate |= {"latent_dimension": 1}
    constants = {
        "expression": kernel,
        "degree": 32,
        "interpolation_degree": degree,
        "ellipses": [{"variable": v, "rho": rho, "maximum": m} for v, m in enumerate(maxima)],
        "range": [0.0, 1e-24],
        "remainder": remainder(maxima, (rho, rho), degree),
        "dropped": 1e-37,
    }
    certificate["constants"] = {"grouping": "split", "kernels": [constants]}
    A = np.zeros((1, 33))
    A[0, 0], A[0, 32] = 3e-24 / 8, 4e-24 / 8
    _forge(tmp_path, certificate, config, A)
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    off = abs(float(load(tmp_path)(one)) - 1.0)  # f(1) = T_16(1)^4 = 1, N(1) = 7/8
    assert 0.1 < off <= check(tmp_path).bound


def test_a_feature_of_the_wrong_length_is_a_failure_not_a_crash(tmp_path: Path) -> None:
    sumformer.construct("mean(exp(x*y))", 1e-3).save(tmp_path)
    rewrite(tmp_path / "config.json", put("products", 0, "support", 0)([]))
    assert not check(sign(tmp_path)).verified


def _forge(folder: Path, certificate: dict[str, Any], config: dict[str, Any], A: np.ndarray) -> None:
    """Write the files with their hashes; the terms are whatever the checker itself finds, and half as much again."""
    numpy = pytest.importorskip("safetensors.numpy")
    (folder / "config.json").write_text(json.dumps(config))
    numpy.save_file({"coefficients.0": A}, folder / "model.safetensors")
    (folder / "certificate.json").write_text(json.dumps(certificate))
    bounds = [1.5 * part + 1e-300 for _, part in check(sign(folder)).terms]
    if not all(map(math.isfinite, bounds)):
        return
    certificate["terms"] = [{"name": n, "kind": k, "bound": b} for n, k, b in zip(NAMES, KINDS, bounds, strict=True)]
    certificate["total"] = sum(bounds)
    certificate["epsilon"] = 2 * certificate["total"]
    (folder / "certificate.json").write_text(json.dumps(certificate))
    sign(folder)

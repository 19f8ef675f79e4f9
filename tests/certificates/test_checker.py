"""check(directory): honest constructions verify, and whatever makes the claim false, or the files lie, does not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tampered import Sample, put, rewrite

from sumformer.certificates.checker import canonical, check
from sumformer.errors import FileFormatError
from sumformer.theorems.construction import construct, load

GAUSS = "sum(exp(-{k}*norm2(x - y))*y)/sum(exp(-{k}*norm2(x - y)))"
SAMPLES: dict[str, Sample] = {
    "gauss": (GAUSS.format(k=4), 1e-3, {"d": 2}),
    "gauss32": (GAUSS.format(k=1), 1e-3, {"d": 2, "dtype": "float32"}),
    "mixed": (GAUSS.format(k=4), 1e-3, {"d": 1, "dtype": "mixed"}),
    "others": (GAUSS.format(k=1).replace("sum", "sum_others"), 1e-3, {"d": 1}),
    "kde": ("mean(exp(-norm2(x - y)/0.245))", 1e-3, {"d": 2}),
    "softrank": ("mean(sigmoid((x - y)/0.1))", 1e-6, {"d": 1}),
    "softrank32": ("mean(sigmoid((x - y)/0.1))", 1e-2, {"d": 1, "dtype": "float32"}),
    "gravity": ("mean((y - x)/sqrt(norm2(x - y) + 0.25)**3)", 1e-3, {"d": 1}),
    "figure2": ("x + 7*x**2 + 3*x*sum_others(y)**3", 1e-6, {"d": 4, "n": 3}),
    "zscore": ("(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)", 1e-6, {"d": 2}),
    "logsum": ("log(1 + sum(norm2(x - y)))", 1e-6, {"d": 1, "n": 8}),
    "joint": ("mean(exp(x*y)*cos(x + y))", 1e-4, {"d": 1, "box": "-1:2"}),
    "log": ("mean(log(3 + x*y + y))", 1e-5, {"d": 1}),
    "nested": ("mean((y - mean(exp(x*y)*y))**2)", 1e-3, {"d": 1}),
    "sum_others": ("sum_others(exp(x*y))", 1e-3, {"d": 1, "n": "..50"}),
    "softmax": ("exp(x)/sum(exp(y))", 1e-6, {"d": 1, "n": "..1000"}),
    "decimal_box": ("mean(exp(x*y)/(2 + x*y))", 1e-4, {"d": 1, "box": "0.1:0.7", "n": "..1000", "dtype": "float32"}),
    "distance": ("norm(x - mean(y))", 1e-6, {"d": 2}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_constructions_verify(name, samples):
    result = check(samples(name))
    assert result.verified, result.failures
    assert 0 < result.bound <= result.claimed <= result.epsilon
    assert sum(bound for _, bound in result.terms) == pytest.approx(result.bound)
    assert result.seconds < 10


def test_a_wrong_hash_alone_fails(copy):
    for field in ("weights_sha256", "config_sha256"):
        saved = copy("gravity")
        rewrite(saved.folder / "certificate.json", put(field)("0" * 64))
        result = check(saved.folder)
        assert not result.verified
        assert any(field in failure for failure in result.failures)


def test_all_reasons_are_given_at_once(copy):
    saved = copy("gravity")
    saved.edit("certificate", lambda c: c.update(latent_dimension=1, epsilon=1e-9, route="guess"))
    text = "\n".join(check(saved.folder).failures)
    assert all(word in text for word in ("latent_dimension", "epsilon", "route"))


def test_a_perturbation_within_the_claim_still_verifies(copy):
    saved = copy("gravity")
    saved.weights(lambda w: w["coefficients.0"].__setitem__((1, 2), w["coefficients.0"][1, 2] + 1e-9))
    assert check(saved.folder).verified


def worst_error(folder: Path, seed: int) -> float:
    """|f − N| over random tokens, corners, and clusters on corners with one token elsewhere; f in float64."""
    construction = load(folder)
    target, net = construction.target, construction.network
    dtype = torch.float64 if net.arithmetic == "float64" else torch.float32
    generator = torch.Generator().manual_seed(seed)
    low, high = (torch.tensor([float(b) for b in ends]) for ends in (target.box.lower, target.box.upper))
    worst = 0.0
    for n in (n for n in (1, 2, 3, 8, 17) if target.tokens.allows(n)):
        X = low + (high - low) * torch.rand(64, n, target.d, generator=generator, dtype=torch.float64)
        corners = low + (high - low) * torch.randint(0, 2, (64, n, target.d), generator=generator).double()
        clusters = corners[:, :1].expand(-1, n, -1).clone()
        clusters[:, 0] = X[:, 0]
        for tokens in (X, corners, clusters):
            rounded = tokens.to(dtype)
            rounded = rounded.clamp(low.to(dtype), high.to(dtype))
            inside = rounded[target.box.contains(rounded).all(-1)]
            if len(inside):
                worst = max(worst, float((target(inside.double()) - net(inside).double()).abs().max()))
    return worst


@pytest.mark.parametrize("name", ["gravity", "others", "softrank32", "nested", "gauss32", "sum_others"])
def test_the_recomputed_bound_holds_whatever_the_weights_are(name, copy):
    """Perturbed a little or a lot: |f − N| ≤ B', and so a verified claim is a true one."""
    rng = np.random.default_rng(5)
    verdicts = []
    for trial in range(6):
        saved = copy(name)
        size = 10.0 ** rng.uniform(-8, 1) * json.loads((saved.folder / "certificate.json").read_text())["epsilon"]

        def change(w, size=size):
            A = w["coefficients.0"]
            place = tuple(rng.integers(0, n) for n in A.shape)
            A[place] += A.dtype.type(rng.choice([-1, 1]) * size)

        saved.weights(change)
        result = check(saved.folder)
        verdicts.append(result.verified)
        observed = worst_error(saved.folder, trial)
        assert observed <= result.bound
        assert not result.verified or observed <= result.claimed
    assert any(verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_the_recomputed_bound_holds_for_many_weights(name, copy):
    rng = np.random.default_rng(11)
    for trial in range(20):
        saved = copy(name)
        size = 10.0 ** rng.uniform(-6, 2) * json.loads((saved.folder / "certificate.json").read_text())["epsilon"]

        def change(w, size=size):
            for A in w.values():
                A += (rng.standard_normal(A.shape) * (rng.random(A.shape) < 0.1) * size).astype(A.dtype)

        saved.weights(change)
        assert worst_error(saved.folder, trial) <= check(saved.folder).bound


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


FILES = ("certificate.json", "config.json", "model.safetensors")
DAMAGE = {
    "missing": lambda p: p.unlink(),
    "truncated": _truncate,
    "empty": lambda p: p.write_bytes(b""),
    "foreign": lambda p: p.write_bytes(b"\x89PNG\r\n" * 100),
    "a list": lambda p: p.write_text("[1, 2]"),
    "an object": lambda p: p.write_text("{}"),
    "long integers": lambda p: p.write_text('{"d": ' + "9" * 10_000 + "}"),
    "deep": lambda p: p.write_text("[" * 100_000),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_unreadable_files_are_format_errors(name, damage, copy):
    saved = copy("figure2")
    DAMAGE[damage](saved.folder / name)
    with pytest.raises(FileFormatError):
        check(saved.folder)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("certificate", "target", "mean(z)"),
        ("certificate", "target", 3),
        ("certificate", "box", "1:0"),
        ("certificate", "tokens", "many"),
        ("certificate", "d", 10**6),
        ("certificate", "d", "2"),
        ("certificate", "total", "small"),
        ("certificate", "terms", [3]),
        ("certificate", "terms", None),
        ("certificate", "constants", []),
        ("certificate", "version", 99),
        ("config", "group", "1024"),
        ("config", "centre", [0.5] * 4),
        ("config", "centre", ["1/0"] * 4),
        ("config", "channels", {}),
        ("config", "channels", [{"factor": "1", "support": [[-1, 0, 0, 0]]}]),
        ("config", "channels", [{"factor": "sum(", "support": []}]),
        ("config", "kernels", [{}]),
        ("config", "reductions", [{"reduction": "x", "components": []}]),
        ("config", "type", "Sumformer"),
        ("config", "extra", 1),
    ],
)
def test_malformed_fields_are_format_errors(file, key, value, copy):
    saved = copy("figure2")
    saved.edit(file, lambda data: data.update({key: value}))
    with pytest.raises(FileFormatError):
        check(saved.folder)


def test_high_powers_are_expanded_once(tmp_path, monkeypatch):
    """T_0, …, T_40 of a coordinate serve all terms: made anew for each, they would take 10⁶ products."""
    construct("mean(x**40*y**40)", 1e-3, d=1).save(tmp_path / "net")
    monkeypatch.setattr(canonical, "MAX_WORK", 10**5)
    found = check(tmp_path / "net")
    assert found.verified, found.failures


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_coordinates_are_not_multiplied(dtype, tmp_path):
    """p ⊛ Σ has 2 entries for each y_c, not 2⁵."""
    construct("mean(y[0]+y[1]+y[2]+y[3]+y[4])", 0.1, d=5, n=2, dtype=dtype).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


@pytest.mark.parametrize(
    "source", ["mean((y*abs(x-y))**2)", "mean(y*norm(cat(x, y))**2)", "mean((y*abs(x-y))**3*abs(x-y)*exp(x*y))"]
)
def test_squares_of_absolute_values_are_squares(source, tmp_path):
    """They are polynomials to the constructor, so they must be to the checker."""
    construct(source, 1e-2, n=3).save(tmp_path)
    assert check(tmp_path).verified

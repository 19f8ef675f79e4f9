"""check of an `ExpressionSumformer`: target, network and claim changed together, so that only the proof can object."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampered import put, rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.ellipse import remainder
from sumformer.targets import to_source
from sumformer.targets.target import target as make_target
from sumformer.theorems.construction import load

NAMES = ("interpolation remainder", "dropped and rounded coefficients", "rounding")
KINDS = ("proved", "enclosed", "rounding")


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


@pytest.mark.parametrize(
    ("source", "weight", "dtype"),
    [("mean(exp(60*y)*({}*y))", "1e-43", "float32"), ("mean(exp(680*y)*({}*y))", "1e-315", "float64")],
)
def test_weights_below_the_normal_numbers_have_no_relative_rounding(
    source: str, weight: str, dtype: str, tmp_path: Path
) -> None:
    """1e-43 is 71 times the least float32: stored with two digits, it met features of 1e26."""
    given = sumformer.construct(source.format("1e-3"), 1e290 if dtype == "float64" else 1e20, n=3, dtype=dtype)
    given.save(tmp_path)
    f = sumformer.target(source.format(weight), n=3)

    def config(data: Any) -> None:
        data["expression"] = data["reductions"][0]["reduction"] = f.source
        for term in data["reductions"][0]["components"][0]:
            scaled = [[gamma, str(Fraction(c) * Fraction(weight) * 1000)] for gamma, c in term["polynomial"]]
            term["polynomial"] = scaled

    def certificate(data: Any) -> None:
        data |= {"target": f.source, "epsilon": 1e200, "total": bound, "terms": []}
        data["terms"] = [{"name": "rounding", "kind": "rounding", "bound": bound}]

    bound = 0.0
    rewrite(tmp_path / "config.json", config)
    rewrite(tmp_path / "certificate.json", certificate)
    bound = 1.01 * check(sign(tmp_path)).bound
    rewrite(tmp_path / "certificate.json", certificate)
    assert check(sign(tmp_path)).verified
    c = sumformer.load(tmp_path)
    X = torch.full((1, 3, 1), 1.0, dtype=c.network.outside)
    assert float((c(X).double() - f(X.double())).abs().max()) <= bound


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

"""d_p(f, N): p-th powers and volumes below or beyond the numbers of float64 are counted, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tampered import rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import RefusedError


@pytest.mark.parametrize("architecture", ["deep-transformer", "sparse-transformer"])
def test_powers_that_underflow_are_not_zero(architecture: str, tmp_path: Path) -> None:
    """0.02²⁵⁰ is 0 in float64, and so was the bound of d_250(f, 0) = 0.019."""
    with pytest.raises(RefusedError, match="needs more cells"):
        sumformer.construct("0.02*x*mean(y)", 1e-3, n=2, architecture=architecture, p=250.0)
    sumformer.construct("0.02*x*mean(y)", 0.1, n=2, architecture=architecture, p=250.0).save(tmp_path)
    assert check(tmp_path).verified

    def claim(data: Any) -> None:
        data["total"] = data["terms"][0]["bound"] = 1e-3

    rewrite(tmp_path / "certificate.json", claim)
    found = check(sign(tmp_path))
    assert not found.verified
    assert found.bound >= 0.019


def test_powers_on_ramps_that_underflow_are_not_zero() -> None:
    """The ramps were as wide as a quarter of a cell, since 0.02²⁵⁰ = 0; on them N is off by up to 0.02."""
    with pytest.raises(RefusedError, match="ramps"):
        sumformer.construct(
            "0.02*x*mean(y)",
            1e-3,
            n=2,
            architecture="transformer",
            route="grid",
            p=250.0,
            options={"activation": "relu"},
        )


def test_volumes_that_underflow_are_not_zero(tmp_path: Path) -> None:
    """V = 1e-400 is 0 in float64, V^{1/10} is 1e-40: d_10(f, 0) is 1e-260, and 5e-324 was verified."""
    options: dict[str, Any] = {"n": 2, "box": "0:1e-200", "architecture": "deep-transformer", "p": 10.0}
    c = sumformer.construct("1e180*x*mean(y)", 1e-30, **options)
    assert c.certificate.total >= 1e-261
    c.save(tmp_path)
    assert check(tmp_path).verified


def test_more_cells_than_can_be_counted_are_refused() -> None:
    with pytest.raises(RefusedError, match="needs more cells"):
        sumformer.construct("x*mean(y)", 1e-12, n=2, architecture="deep-transformer", p=60.0)


@pytest.mark.parametrize(
    ("source", "epsilon", "options"),
    [("1e-200*x", 1e-201, {"p": 3.5}), ("1e200*x", 4e199, {"p": 2.0}), ("exp(-x)*mean(y)", 1e24, {"box": "-1e6:1e6"})],
)
def test_targets_beyond_float64_are_refused(source: str, epsilon: float, options: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        sumformer.construct(source, epsilon, n=2, architecture="deep-transformer", **options)

"""Constants, boxes and products at the ends of an arithmetic, where they under- or overflow: counted, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import RefusedError, SumformerError

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


def test_products_that_underflow_are_counted() -> None:
    """Σ b p with b = e^{-80} and p = 1e-20 is 0 in float32, and so was the quotient, certified to 3e-23."""
    source = "sum(exp(-80-(x-y)**2)*y)/sum(exp(-80-(x-y)**2))"
    X = torch.full((1, 2, 1), 1e-20)
    for epsilon in (1e-3, 1e-1, 1e1):
        try:
            c = sumformer.construct(source, epsilon, dtype="float32", box="0:2e-20")
        except RefusedError:
            continue
        assert float((c(X) - X).abs().max()) <= c.certificate.total


@pytest.mark.parametrize(("source", "box"), BEYOND)
def test_a_box_outside_float32_is_refused_in_it(source: str, box: str) -> None:
    with pytest.raises(RefusedError):
        sumformer.construct(source, 1e-3, dtype="float32", n=1, box=box)


def test_a_box_too_small_for_float64_is_refused_cleanly() -> None:
    with pytest.raises(SumformerError):
        sumformer.construct("mean(1e300*(1e10*y))", 1e-3, n=1, box="0:1e-310")


@pytest.mark.parametrize(("arithmetic", "edge"), [("mixed", "1e-37"), ("float32", "1e-32"), ("float64", "1e-300")])
def test_boxes_of_subnormal_tokens_are_refused(arithmetic: str, edge: str) -> None:
    """Where a device takes such tokens for 0, 1e37·x is off by 0.1."""
    with pytest.raises(RefusedError, match="lose their digits"):
        sumformer.construct(f"x/{edge}", 1e-3, box=f"0:{edge}", dtype=arithmetic)


def test_a_target_below_float64_is_refused_in_words() -> None:
    with pytest.raises(SumformerError, match="0 everywhere"):
        sumformer.construct("exp(-1e6*(1+mean(y)*x))", 1e-5, n=2, route="symmetric")


def test_what_is_built_is_within_epsilon() -> None:
    """16777217 is no float32 number, so that the centre of a cell was its end; and 1/5e-311 is no number at all."""
    with pytest.raises(RefusedError, match="too far apart"):
        sumformer.construct("sum((x-y)**2)", 0.01, dtype="float32", box="16777216:16777218", n="..4")
    with pytest.raises(RefusedError, match="too small"):
        sumformer.construct("0*x", 0.01, box="0:1e-310")


@pytest.mark.parametrize(
    ("source", "epsilon", "options"),
    [
        ("mean(exp(sin(x*y)**2 + cos(x*y)**2))", 1e-2, {"box": "-1:1"}),  # a range wider than the constant it holds
        ("cos(mean(y))", 1e-3, {"box": "100000:100001", "n": 2, "route": "grid"}),  # a wave far out
        ("norm(cat(mean(y*y), 5))", 1e-2, {"box": "-1e-9:1e-9", "n": 3, "route": "grid"}),  # rounding alone
        ("norm(5 + mean(y*y))", 1e-2, {"box": "-1e-9:1e-9", "n": 3, "route": "grid", "dtype": "float32"}),
    ],
)
def test_honest_certificates_verify(source: str, epsilon: float, options: dict[str, Any], tmp_path: Path) -> None:
    c = sumformer.construct(source, epsilon, **options)
    c.save(tmp_path)
    assert check(tmp_path).verified


PLAIN: list[tuple[str, float, dict[str, Any]]] = [
    ("mean(sin(x*y))", 1e-12, {"box": "0:1e-9", "n": "..3"}),  # sinh of 1e-18
    ("tanh(1000000*mean(y))", 1e-6, {"box": "-3:-2", "n": 2, "dtype": "float32"}),  # e^{6000000}
    ("exp(-1000*mean(y)**2)", 1e-12, {"box": "16777216:16777218", "n": "2..5", "dtype": "float32"}),  # e^{-1e17 ± 1e10}
    ("mean(sqrt(1+(x-y)**2))", 1e-12, {"n": 1}),
    ("sum(y)*x-sum(y**2)", 1e-10, {"box": "1:1.000000001", "n": 2, "route": "symmetric"}),
]


@pytest.mark.parametrize(("source", "epsilon", "options"), PLAIN)
def test_small_and_large_boxes_verify(source: str, epsilon: float, options: dict[str, Any], tmp_path: Path) -> None:
    sumformer.construct(source, epsilon, **options).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures
    assert json.loads((tmp_path / "certificate.json").read_text())["total"] <= epsilon


@pytest.mark.parametrize("route", [None, "sums"])
@pytest.mark.parametrize(
    ("box", "dtype"), [("-1e400:1e400", "float64"), ("-1e40:1e40", "float32"), ("1e40:3e40", "mixed")]
)
def test_boxes_whose_edges_are_no_numbers_are_refused(box: str, dtype: str, route: Any) -> None:
    with pytest.raises(RefusedError, match="too large or too small"):
        sumformer.construct("mean(y)", 0.01, d=1, box=box, dtype=dtype, route=route)


def test_rounding_that_is_not_bounded_is_called_so() -> None:
    with pytest.raises(RefusedError, match="in a box as narrow as this"):
        sumformer.construct("mean(y-x)", 1e-3, route="sums", box="0.1:0.1000001", dtype="float32")

"""The ε that a refusal prints can be had: it is read off the message, and asked for."""

from __future__ import annotations

import re

import pytest
import torch

import sumformer
from sumformer.algebra.rounding import shown_up
from sumformer.errors import RefusedError

DEEP, SPARSE = {"architecture": "deep-transformer"}, {"architecture": "sparse-transformer"}
TABLE = {"architecture": "transformer", "route": "grid"}
CASES = [
    ("x+mean(y)", 1e-3, {"n": 2, **DEEP}),
    ("x+mean(y)", 1e-3, {"n": 3, **SPARSE}),
    ("x+mean(y)", 1e-3, {"n": 3, "box": "-2:5", **DEEP}),
    ("x+mean(y)", 1e-3, {"n": 6, **DEEP}),
    ("max(y)-x", 1e-3, {"n": 3, **TABLE}),
    ("max(y)-x", 1e-3, {"n": 3, **TABLE, "p": 2, "options": {"activation": "relu"}}),
    ("max(y)", 1e-6, {"n": 8, "d": 4}),
]


@pytest.mark.parametrize(("source", "epsilon", "asked"), CASES)
def test_the_epsilon_of_a_refusal(source, epsilon, asked):
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct(source, epsilon, **asked)
    printed = re.findall(r"(?:reaches|reachable here:|nearest:) ε [=≈] ([\d.e+-]*\d)", str(refusal.value))
    assert printed
    assert 0 <= min(map(float, printed)) - refusal.value.reachable <= 0.11 * refusal.value.reachable
    for said in map(float, printed):  # by one route or another
        assert sumformer.construct(source, said, **asked).certificate.total <= said


@pytest.mark.slow
@pytest.mark.parametrize(("source", "epsilon", "asked"), [*CASES, ("x+mean(y)", 1e-3, {"n": 3, **DEEP})])
def test_the_number_a_refusal_carries(source, epsilon, asked):
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct(source, epsilon, **asked)
    reachable = refusal.value.reachable
    assert sumformer.construct(source, reachable, **asked).certificate.total <= reachable


def test_of_a_function_without_a_formula():
    f = sumformer.target(lambda X: X - X.mean(-2, keepdim=True), n=8, d=2, lipschitz=2.0)
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct(f, 1e-6)
    said = float(str(refusal.value).split("reachable here: ε = ")[1])
    assert sumformer.construct(f, said).certificate.total <= said


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_printed_numbers_are_bounds(digits):
    numbers = torch.logspace(-320, 300, 400, dtype=torch.float64).tolist()
    for value in [*numbers, 0.1, 0.5, 1.0, 99.95, 722.0, 0.0]:
        near, up = float(f"{value:.{digits}g}"), float(shown_up(value, digits))
        assert up == near if near >= value else near < value < up <= near * (1 + 1.001 * 10 ** (1 - digits))
        assert shown_up(up, digits) == shown_up(value, digits)


def test_printed_numbers_as_examples():
    assert [shown_up(v) for v in (0.048815, 0.1, 722.2, 0.9999, float("inf"))] == ["0.0489", "0.1", "723", "1", "inf"]

"""What people write: exponents by halves, norm(v)**2, boxes as pairs, names of other languages, a minus in front."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

import sumformer
from sumformer.errors import InputError, TargetError
from sumformer.targets import parse, target, to_source
from sumformer.targets.domain import Box


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("x**2.0", "x**2"),
        ("x**0.5", "sqrt(x)"),
        ("x**1.5", "sqrt(x)**3"),
        ("x**-0.5", "sqrt(x)**-1"),
        ("x**(3/2)", "sqrt(x)**3"),
        ("x**(-1/2)", "sqrt(x)**-1"),
        ("x**(4/2)", "x**2"),
        ("abs(x)**2", "x**2"),
        ("abs(x)**-4", "x**-4"),
        ("abs(x)**3", "abs(x)**3"),
    ],
)
def test_exponents(written: str, read: str) -> None:
    assert parse(written, 1) == parse(read, 1)
    assert parse(to_source(parse(written, 1)), 1) == parse(written, 1)


def test_even_powers_of_norms_are_polynomials() -> None:
    assert parse("mean(exp(-norm(x-y)**2))", 2) == parse("mean(exp(-norm2(x-y)))", 2)
    assert parse("mean(1/(1+norm(x-y)**4))", 2) == parse("mean(1/(1+norm2(x-y)**2))", 2)
    assert parse("norm(x)**3", 2) != parse("norm2(x)**2", 2)
    f = target(lambda x, y: sumformer.targets.functions.norm(x) ** 2 + (1 + x[0] ** 2) ** 0.5, d=2)
    assert f.source == "norm2(x) + sqrt(1 + x[0]**2)"
    assert sumformer.construct("mean(exp(-norm(x-y)**2))", 1e-2, d=2).certificate.route == "sums"


@pytest.mark.parametrize("exponent", [1 / 3, float("nan"), "2", Fraction(1, 3), None, True])
@pytest.mark.parametrize("source", ["x", "abs(x)", "norm2(x)", "norm(x)"])
def test_other_exponents_are_refused(source: str, exponent: object) -> None:
    with pytest.raises(TargetError, match="expon"):
        parse(source, 1) ** exponent  # type: ignore[operator]


def test_exponents_of_numpy() -> None:
    x = parse("x", 1)
    assert x ** np.float64(1.5) == parse("sqrt(x)**3", 1)
    assert x ** np.int64(2) == x**2


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("std(y)", "mean\\(\\(y - mean\\(y\\)\\)\\*\\*2\\)"),
        ("median(y)", "soft rank"),
        ("log1p(x)", "log\\(1 \\+"),
        ("np.exp(x)", "without a prefix"),
        ("|x|", "abs"),
        ("y.mean()", "without a prefix, as exp.x. and mean.y."),
        ("mean(y, axis=1)", "no named arguments"),
        ("\\frac{1}{2} x", r"^unexpected character '\\': .*not in LaTeX"),
        ("mean(‖x - y‖)", r"'norm\(…\)'"),
        ("x - mean(y_j)", r"did you mean y\?"),
        ("x_i", r"did you mean x\?"),
        ("x[1]", "width 1, only coordinate 0;"),
        (" ", "the formula is empty: .*as in x - mean"),
        ("2x", "written with \\*"),
        ("x(1 - x)", "written with \\*"),
        ("[x, x]", "cat\\(a, b\\)"),
        ("x, x", "cat\\(a, b\\)"),
        ("x[2]", "--dim N"),
        ("mean(x)", "mean\\(y\\)\\? x is the own token"),
        ("mean(mean(abs(x - y)))", "one number"),
    ],
)
def test_hints(source: str, hint: str) -> None:
    with pytest.raises(TargetError, match=hint):
        parse(source, 1)


@pytest.mark.parametrize("name", ["arctan", "erf", "cross"])
def test_no_hint_is_better_than_a_wrong_one(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse(f"{name}(x)", 1)
    assert "did you mean" not in str(caught.value)


def test_boxes_as_pairs() -> None:
    assert target("x", d=2, box=(0.1, 1)).box == Box.parse("0.1:1", 2)
    assert target("x", d=2, box=[(0, 1), (-2, 2)]).box == Box.parse("0:1,-2:2", 2)
    for wrong in ((1,), (0, 1, 2), [(0, 1), 2], {0: 1}, (1, 0), ("a", "b"), []):
        with pytest.raises(InputError, match=r"[bB]ox"):
            target("x", d=2, box=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["sqrt(mean(y**2) - mean(y)**2)", "1/(mean(y*y) - mean(y)**2 + 0.01)"])
def test_a_variance_by_its_other_formula(source: str) -> None:
    with pytest.raises(sumformer.errors.RefusedError, match=r"write mean\(\(y - mean\(y\)\)\*\*2\)"):
        sumformer.construct(source, 1e-2)


def test_what_reaches_zero_is_kept_away_from_it() -> None:
    with pytest.raises(sumformer.errors.RefusedError, match=r"offset, as mean\(y\) \+ 0.01") as caught:
        sumformer.construct("log(mean(y))", 1e-2)
    assert len(caught.value.reasons) == 1  # to fix n would not help
    sumformer.construct("log(mean(y) + 0.01)", 1e-2)


@pytest.mark.parametrize(
    ("source", "dtype"), [("sqrt(mean((y - mean(y))**2))", "float32"), ("exp(x)*mean(y)", "mixed")]
)
def test_the_nearest_epsilon_can_be_had(source: str, dtype: str) -> None:
    with pytest.raises(sumformer.errors.RefusedError) as caught:
        sumformer.construct(source, 1e-15, dtype=dtype)
    assert caught.value.reachable is not None
    sumformer.construct(source, caught.value.reachable, dtype=dtype)


def test_an_epsilon_above_the_target_is_not_named() -> None:
    with pytest.raises(sumformer.errors.RefusedError) as caught:
        sumformer.construct("mean(1/(1e-10 + (x - y)**2))/1e10", 1e-9)
    assert caught.value.reachable is None or caught.value.reachable < 1


def test_a_formula_that_begins_with_a_minus(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sumformer", "construct", "-exp(x)*mean(y)", "-e", "1e-3", "--no-report", "-o"]
    subprocess.run([*command, str(tmp_path / "net")], check=True, capture_output=True)
    x = torch.tensor([[[0.5], [1.0]]], dtype=torch.float64)
    got = sumformer.load(tmp_path / "net").network(x)
    torch.testing.assert_close(got, -x.exp() * 0.75, rtol=0, atol=1e-3)

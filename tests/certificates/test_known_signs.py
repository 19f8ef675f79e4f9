"""(·)⁺ of a number whose sign is known is that number, or 0: what the compiler leaves out, the checker leaves out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.atoms import Terms, rational
from sumformer.certificates.checker.compiled.element import Element, between
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.theorems.construction import construct

KNOWN: list[tuple[str, dict[str, Any]]] = [
    ("abs(x)", {"box": "0.1:0.7"}),
    ("max(x, mean(y) + 2)", {}),
    ("min(x, 2) + max(x, -1)", {"box": "-1:1"}),
    ("abs(x)*mean(abs(y))", {"box": "0.1:0.7", "architecture": "performer", "n": "..5"}),
    ("min(mean(abs(y)), mean(y))", {"box": "0.3:0.4"}),
    ("exp(-abs(mean(y)))", {"box": "-1:0", "architecture": "linformer"}),
    ("min(x + sum(y)/3, x)", {"box": "1:2"}),
    ("max(min(sum(y)/3, mean(max(y, 0.2))), sum(y)/3)", {"box": "-1:0"}),
    ("max(x - exp(-mean(y)), x)", {"box": "-2:2"}),
    ("x*exp(-abs(exp(-abs(0.3)))) + sqrt(log(2))", {}),
]


@pytest.mark.parametrize(("source", "asked"), KNOWN)
def test_what_has_a_sign_verifies(tmp_path, source, asked):
    construct(source, 0.05, **({"architecture": "transformer", "n": 3} | asked)).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def moved(forms: Forms, by: float, error: float = 0.0) -> Element:
    """u + by, |u| ≤ 1, within an error."""
    t = forms.add(forms.chebyshev((1,)), forms.const(by))
    return Element(t.terms, error, t.range)


@pytest.mark.parametrize(
    ("by", "error", "sign"),
    [(1.0, 0.0, 1), (1.5, 0.25, 1), (-1.5, 0.25, -1), (-1.0, 0.0, -1), (0.5, 0.0, 0), (1.5, 0.75, 1), (1.5, 0.5, 1)],
)
def test_the_positive_part_of_a_known_sign(by, error, sign):
    forms = Forms(1)
    t = moved(forms, by, error)
    for s in (1, -1):  # of t and of −t
        found = forms.positive(t if s > 0 else forms.neg(t))
        assert found.error >= error
        if sign:
            assert found.terms == ({m: c * s for m, c in t.terms.items()} if s == sign else {})
        else:
            assert any(m[1] for m in found.terms)


def test_a_range_that_holds_t_says_nothing_of_a_sum_farther_off():
    """t = 0 ∈ [0, 0] within 0.5 of Σ = u/2, which changes its sign: of another t that is Σ, it must not be known."""
    forms = Forms(1)
    half = {((1,), (), 0): fmpq(1, 2)}
    forms.positive(Element(half, 0.5, between(0.0, 0.0)))
    assert forms.positive(Element(half, 0.0, between(-0.5, 0.5))).terms not in (half, {})


def value(forms: Forms, terms: Terms, u: Fraction) -> Fraction:
    """Σ at u, of terms of degree 1 and positive parts of such."""
    out = Fraction(0)
    for (alpha, atoms, _), c in terms.items():
        factor = Fraction(int(c.numerator), int(c.denominator)) * (u if alpha == (1,) else 1)
        for number, _ in atoms:
            factor *= max(value(forms, forms.atoms.table[number].argument, u), Fraction(0))
        out += factor
    return out


near_one = st.sampled_from([0.0, 2.0**-30, -(2.0**-30), 2.0**-24, 0.25, -0.5]).map(lambda v: 1 + v)
sign = st.sampled_from([1.0, -1.0])
lines = st.tuples(
    near_one, sign, near_one, sign, st.sampled_from([0.0, 2.0**-31, 0.25]), st.floats(-1, 1), st.booleans()
)


@settings(deadline=None, max_examples=300)
@given(st.lists(lines, min_size=1, max_size=5), st.integers(-8, 8))
def test_positive_parts_are_within_their_error(found, at):
    """t = a + b u + share·e, of which a + b u ± e is known, and a range that holds it, wider or not."""
    forms, u = Forms(1), Fraction(at, 8)
    for a, s, b, r, e, share, wide in found:
        a, b = s * a, r * b
        shift, more = share * e, 2.0 if wide else 2.0**-50
        terms = {((0,), (), 0): rational(a), ((1,), (), 0): rational(b)}
        t = Element(terms, e, between(a - abs(b) + shift - more, a + abs(b) + shift + more))
        positive = forms.positive(t)
        true = max(Fraction(a) + Fraction(b) * u + Fraction(shift), Fraction(0))
        assert abs(true - value(forms, positive.terms, u)) <= Fraction(positive.error)
        assert Fraction(float(positive.range.lo)) <= true <= Fraction(float(positive.range.hi))


def test_equal_numbers_are_written_alike():
    """The first range known decides, whichever of them is the better one."""
    for first, second in [((-1.0, 1.0), (0.25, 1.0)), ((0.25, 1.0), (-1.0, 1.0))]:
        forms = Forms(1)
        u = forms.chebyshev((1,)).terms
        one, other = (forms.positive(Element(u, 0.0, between(*range))) for range in (first, second))
        assert one.terms == other.terms
        assert one.error == other.error == 0.0


def test_what_is_taken_for_a_near_number_of_known_sign_is_paid_for():
    forms = Forms(1)
    forms.positive(moved(forms, 1.0))
    near = forms.scaled(moved(forms, 1.0 - 2.0**-30), Fraction(3))
    found = forms.positive(near)  # as low as −3·2⁻³⁰
    assert found.terms == {m: 3 * c for m, c in moved(forms, 1.0).terms.items()}
    assert 3 * 2.0**-30 <= found.error < 3.1 * 2.0**-30


def test_the_size_of_a_cancelled_difference_is_that_of_its_terms():
    """(a/3 rounded − a/3)⁺ with a range that does not see that they cancel."""
    forms = Forms(1)
    a = forms.named("a", between(-1.0, 1.0))
    t = forms.positive(forms.sub(forms.scaled(a, 1 / 3), forms.scaled(a, Fraction(1, 3))))
    assert t.terms
    assert forms.atoms.mass(t.terms) < 1e-16


@pytest.mark.parametrize("fn", ["exp", "log", "sqrt", "tanh"])
def test_a_function_of_nearly_a_constant_is_nearly_a_constant(fn):
    forms = Forms(1)
    exact = forms.function(fn, forms.const(Fraction(2)))
    found = forms.function(fn, Element(forms.const(Fraction(2)).terms, 1e-3, between(1.999, 2.001)))
    assert found.terms == exact.terms
    ends = [forms.function(fn, forms.const(Fraction(at) / 1000)).terms[forms.atoms.one] for at in (1999, 2001)]
    for end in ends:
        assert abs(float(end - found.terms[forms.atoms.one])) <= found.error <= 8e-3
        assert float(found.range.lo) <= float(end) <= float(found.range.hi)

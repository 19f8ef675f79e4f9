from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.algebra.expanded_polynomial import ExpandedPolynomial
from sumformer.algebra.identity_proof import prove_identity
from sumformer.errors import CertificateError, InputError, NotSymmetricError, RefusedError
from sumformer.targets import parse
from sumformer.theorems.alberti_2023 import power_sums as module
from sumformer.theorems.alberti_2023.polynomial_tree import as_polynomial
from sumformer.theorems.alberti_2023.power_sums import (
    CHOICES,
    expand,
    multisymmetric,
    semi_invariant_form,
    side_by_side,
)
from sumformer.theorems.alberti_2023.tree_residue import prove_tree_identity

SOURCES = [
    ("x*sum(y**2) - mean(x*y)**3 + 2", 1),
    ("sum_others((x - y)**4)/3", 1),
    ("mean_others(y)**2 - mean(y**2)", 1),
    ("sum_others(norm2(x - y)*y)/3 + mean(y*total(sum(y)))", 2),
    ("cat(dot(x, sum(y)), total(sum(y*dot(x, y))))[0:1]**2", 2),
    ("sum((y[0] - x[1])**2 * y[1]) * sum_others(y[0]) - 1/2", 2),
    ("mean(norm2(y - mean(y)))", 2),
]


@pytest.mark.parametrize(("source", "d"), SOURCES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_homomorphism_and_the_expansion_agree(source, d, n):
    direct = semi_invariant_form(source, n, d)
    assert direct.failure_probability < 2.0**-40
    for sigma, written in zip(direct.sigmas, expand(parse(source, d), n, d), strict=True):
        f = ExpandedPolynomial.of(written, n, d)
        assert prove_identity(f, sigma, method="expansion").failure_probability == 0
        assert prove_identity(f, semi_invariant_form(written, n, d).sigmas[0]).failure_probability < 2.0**-40


def test_the_values_are_those_of_the_target():
    form = semi_invariant_form("x*sum(y**2) - mean(x*y)**3 + 2", 4)
    X = [Fraction(k, 3) for k in (2, -1, 5, 4)]
    expected = X[0] * sum(v**2 for v in X) - (X[0] * sum(X) / 4) ** 3 + 2
    assert form.sigmas[0].evaluate([X[0]], [[v] for v in X[1:]]) == expected


def test_sums_are_never_expanded_in_n():
    form = semi_invariant_form("sum(y)**5*x[0] + sum_others((x - y)**4)", 5000, 3)
    assert form.terms < 60
    assert form.products == 5


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_tree_without_sums_holds_all_tokens(n):
    product = "*".join(f"x[{i}]" for i in range(n))
    form = semi_invariant_form(parse(product, n) if n > 1 else {(1,): 1}, n)
    X = [Fraction(k + 2, 7) for k in range(n)]
    assert form.sigmas[0].evaluate([X[0]], [[v] for v in X[1:]]) == math.prod(X)
    assert form.products == n - 1


@given(st.integers(1, 3), st.integers(2, 4), st.integers(1, 5), st.integers(-3, 3))
@settings(max_examples=15, deadline=None)
def test_round_trip_from_power_sums(d, n, degree, c):
    """One power sum a term: that form is the only one, so it is read back from the expansion."""
    source = f"x[0]*sum_others(y[{d - 1}]**{degree}) + {c}*sum_others(y[0])"
    if degree == 1 and c == 0:
        source += "+ 1"
    direct, (written,) = semi_invariant_form(source, n, d), expand(parse(source, d), n, d)
    assert semi_invariant_form(written, n, d).sigmas[0].terms == direct.sigmas[0].terms


def test_three_latent_dimensions_side_by_side():
    forms = side_by_side("sum_others((x - y)**6)*sum(y)", 4, 2)
    assert tuple(f.latent for f in forms) == CHOICES
    proof, sufficient, shallowest = forms
    assert proof.dimension == math.comb(4 + 2, 2) - 1
    assert sufficient.dimension == math.comb(3 + 2, 2) - 1
    assert shallowest.dimension == len(shallowest.betas) == 12
    assert max(map(sum, proof.betas)) <= 4
    assert max(map(sum, sufficient.betas)) <= 3
    assert max(map(sum, shallowest.betas)) == 6
    assert shallowest.products < proof.products < sufficient.products
    assert all(f.failure_probability < 2.0**-40 for f in forms)


def test_low_degrees_need_no_choice():
    assert len({tuple(map(id, f.sigmas)) for f in side_by_side("sum(y)**2 + x", 6)}) == 1


def test_briand():
    """A 2.12 as printed: n tokens, |β| ≤ n."""
    for n in (2, 3, 4):
        top = {tuple(5 * (i == j) for i in range(n)): 1 for j in range(n)}
        form = multisymmetric(top, n, latent="proof")
        assert max(map(sum, form.betas)) <= n
        X = [[Fraction(k - 1, 2)] for k in range(n)]
        assert form.sigmas[0].evaluate([Fraction(0)], X) == sum(v**5 for (v,) in X)


def test_what_is_no_polynomial_is_refused_with_every_reason():
    with pytest.raises(RefusedError) as refused:
        semi_invariant_form("exp(x) + norm(x)/sum(y) + max(y) + x**-2", 3)
    assert len(refused.value.reasons) == 5


def test_what_is_not_symmetric_is_refused():
    with pytest.raises(NotSymmetricError) as refused:
        semi_invariant_form(parse("x[0]*x[1] + x[2]**3", 3), 3)
    assert set(refused.value.exponents) <= {(0, 0, 3), (0, 3, 0), (1, 1, 0), (1, 0, 1)}
    with pytest.raises(NotSymmetricError):
        multisymmetric({(1, 0): 1, (0, 1): 2}, 2)


def test_mistakes_are_told():
    with pytest.raises(InputError, match="one of proof, sufficient, shallowest"):
        semi_invariant_form({(1, 1): 1}, 2, latent="deep")
    with pytest.raises(InputError, match="width n·d"):
        semi_invariant_form(parse("x[0] + x[2]", 5), 3, 1)
    with pytest.raises(InputError, match="all tokens"):
        multisymmetric("sum(y)", 3)
    with pytest.raises(InputError, match="n ≥ 1"):
        semi_invariant_form({}, 0)
    with pytest.raises(RefusedError, match="too large to write out"):
        expand(parse("norm2(sum(y))**30", 10), 10, 10)


def test_a_wrong_form_of_a_tree_is_caught():
    tree = as_polynomial(parse("sum(y)**2*x - x/3", 1))
    right = module.sums_in_power_sums(tree, 5, 1)
    prove_tree_identity(tree, right, 5, 1)
    other = module.sums_in_power_sums(as_polynomial(parse("sum(y)**2*x - x/3 + 0.001*mean(y)", 1)), 5, 1)
    with pytest.raises(CertificateError, match="differ modulo"):
        prove_tree_identity(tree, other, 5, 1)

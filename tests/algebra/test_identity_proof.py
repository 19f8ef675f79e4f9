from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from multisymmetric_examples import dense, semi_invariants

from sumformer.algebra.expanded_polynomial import ExpandedPolynomial
from sumformer.algebra.identity_proof import prove_identity, prove_zero
from sumformer.algebra.modular import is_prime, monomial_values, random_prime
from sumformer.algebra.multisymmetric import in_power_sums
from sumformer.algebra.power_sum_reduction import within
from sumformer.algebra.small_polynomial import SmallPolynomial
from sumformer.errors import CertificateError, RefusedError


def corrupted(sigma, t, by):
    numerators = sigma.numerators.astype(object)
    numerators[t] += by
    return dataclasses.replace(sigma, numerators=numerators)


@given(semi_invariants(max_tokens=3, max_d=2))
@settings(max_examples=40, deadline=None)
def test_both_proofs_accept_what_is_equal(example):
    polynomial, tokens, d = example
    f = ExpandedPolynomial.of(polynomial, tokens, d)
    for sigma in (in_power_sums(f), within(in_power_sums(f), tokens - 1)):
        assert prove_identity(f, sigma, method="expansion").failure_probability == 0
        proof = prove_identity(f, sigma, method="modular", source=random.Random(1))
        assert proof.failure_probability < 2.0**-40
        assert SmallPolynomial(polynomial, tokens, d, own=1).prove(sigma).failure_probability < 2.0**-40


@pytest.mark.parametrize("method", ["expansion", "modular"])
@pytest.mark.parametrize("by", [1, -(10**30), 2**31 - 1])
def test_one_corrupted_coefficient_is_caught(method, by):
    f = ExpandedPolynomial.of(dense(3, 2, 4), 3, 2)
    sigma = in_power_sums(f)
    for t in range(0, len(sigma), 17):
        with pytest.raises(CertificateError, match="differ"):
            prove_identity(f, corrupted(sigma, t, by), method=method)


@pytest.mark.parametrize("degree", [2, 4])
def test_the_small_proof_catches_it_too(degree):
    polynomial = dense(3, 1, degree)
    small = SmallPolynomial(polynomial, 3, 1, own=1)
    sigma = small.in_power_sums()
    small.prove(sigma)
    for t in range(len(sigma)):
        with pytest.raises(CertificateError, match="differ"):
            small.prove(corrupted(sigma, t, 1))


def test_both_kinds_of_small_proof_occur():
    methods = {SmallPolynomial(p, n, 1, 1).prove(SmallPolynomial(p, n, 1, 1).in_power_sums()).method
               for p, n in ((dense(2, 1, 2), 2), (dense(4, 1, 4), 4))}  # fmt: skip
    assert methods == {"expansion", "modular"}


def test_a_large_one_is_proved_modulo_primes():
    f = ExpandedPolynomial.of(dense(4, 2, 5), 4, 2)
    proof = prove_identity(f, in_power_sums(f))
    assert proof.method == "modular"
    assert 0 < proof.failure_probability < 1e-12
    assert "probability" in str(proof)


def test_a_multiple_of_one_prime_does_not_deceive():
    """The integer polynomial p·x vanishes modulo p everywhere: only the choice of p saves the proof."""
    p = random_prime(random.Random(5))
    with pytest.raises(CertificateError):
        prove_zero(lambda points, q: p * points[0][0] % q, 1, 1, 1, p.bit_length(), random.Random(6))
    with pytest.raises(RefusedError, match="too large"):
        prove_zero(lambda points, q: 0, 1, 1, degree=2**29, bits=3)


def test_primes_are_decided():
    sieve = [n for n in range(2, 3000) if all(n % k for k in range(2, int(n**0.5) + 1))]
    assert [n for n in range(3000) if is_prime(n)] == sieve
    assert is_prime(2**31 - 1)
    assert not is_prime(46337 * 46337)
    assert not is_prime(3215031751 // 151)
    assert 2**30 < random_prime(random.Random(0)) < 2**31


def test_monomials_modulo_p():
    p, degrees, points = 2**31 - 1, np.array([[0, 0], [3, 1], [0, 5]]), [[2**30, 12345678], [7, 2**31 - 2]]
    found = monomial_values(degrees, np.array(points, dtype=np.uint64), p)
    expected = [[pow(x, a, p) * pow(y, b, p) % p for a, b in degrees.tolist()] for x, y in points]
    assert found.tolist() == expected

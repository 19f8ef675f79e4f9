"""P_w and Λ_w are attained, and never exceeded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sumformer.algebra.equidistant import lebesgue, node_polynomial

WIDTHS = (2, 4, 6, 8, 10, 12, 16)


def basis(width: int, r: np.ndarray) -> np.ndarray:
    """ℓ_a(r) by its definition, (w, r)."""
    nodes = np.arange(width) - (width // 2 - 1)
    return np.array([np.prod([(r - b) / (a - b) for b in nodes if b != a], axis=0) for a in nodes])


@pytest.mark.parametrize("width", WIDTHS)
def test_lebesgue_is_attained_and_not_exceeded(width):
    found = np.abs(basis(width, np.linspace(0, 1, 2001))).sum(0).max()
    assert found <= lebesgue(width) <= found * (1 + 1e-9)


@pytest.mark.parametrize("width", WIDTHS)
def test_node_polynomial_is_attained_and_not_exceeded(width):
    r = np.linspace(0, 1, 2001)
    found = np.abs(np.prod([r - b for b in np.arange(width) - (width // 2 - 1)], axis=0)).max()
    assert found <= float(node_polynomial(width)) * (1 + 1e-12)
    assert float(node_polynomial(width)) <= found * (1 + 1e-9)


@pytest.mark.parametrize("width", [4, 6, 8])
def test_the_remainder_of_a_monomial_is_exact(width):
    """g = r^w has g^(w)/w! = 1: its interpolant is off by exactly P_w in the middle of the interval."""
    nodes = [Fraction(b) for b in range(1 - width // 2, width // 2 + 1)]
    half = Fraction(1, 2)
    value = Fraction(0)
    for a in nodes:
        weight = Fraction(1)
        for b in nodes:
            weight *= (half - b) / (a - b) if b != a else 1
        value += weight * a**width
    assert abs(half**width - value) == node_polynomial(width)

"""Arithmetic modulo a random prime 2³⁰ ≤ p < 2³¹, vectorised: products of two residues fit in 64 bits."""

from __future__ import annotations

import random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.orbit_sums import IntArray, Values

Residues = NDArray[np.uint64]

SMALLEST: Final = 2**30
PRIMES: Final = 50_000_000
"""There are π(2³¹) − π(2³⁰) = 105 097 565 − 54 400 028 primes to choose from, more than this."""
_WITNESSES: Final = (2, 3, 5, 7)
_SMALL: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def random_prime(source: random.Random) -> int:
    """Uniform among the primes of [2³⁰, 2³¹)."""
    while True:
        candidate = source.randrange(SMALLEST + 1, 2 * SMALLEST, 2)
        if is_prime(candidate):
            return candidate


def is_prime(p: int) -> bool:
    """Miller–Rabin with the bases 2, 3, 5, 7, which decides every p < 3 215 031 751."""
    for small in _SMALL:
        if p % small == 0:
            return p == small
    if p < 2:
        return False
    odd, twos = p - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(p, a, odd, twos) for a in _WITNESSES)


def residues(integers: Values, p: int) -> Residues:
    """Integers of any size modulo p."""
    return np.asarray(integers % p).astype(np.uint64)


def times(a: Residues, b: Residues, p: int) -> Residues:
    return a * b % np.uint64(p)


def monomial_values(degrees: IntArray, points: Residues, p: int) -> Residues:
    """(points, degrees): Π_c x_c^{degree_c} modulo p."""
    powers = [np.ones_like(points)]
    for _ in range(int(degrees.max(initial=0))):
        powers.append(times(powers[-1], points, p))
    table = np.stack(powers)  # (exponent, point, coordinate)
    values = np.ones((len(points), len(degrees)), dtype=np.uint64)
    for c in range(degrees.shape[1]):
        values = times(values, table[degrees[:, c], :, c].T, p)
    return values


def _passes(p: int, a: int, odd: int, twos: int) -> bool:
    power = pow(a, odd, p)
    if power in (1, p - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % p
        if power == p - 1:
            return True
    return False

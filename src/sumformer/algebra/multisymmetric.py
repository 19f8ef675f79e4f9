"""Every polynomial that is symmetric in m others is a polynomial in their power sums: Σ_orbits c_B m̃(B) / Π mult!."""

from __future__ import annotations

import math

import numpy as np

from sumformer.algebra.expanded_polynomial import WORD, ExpandedPolynomial
from sumformer.algebra.orbit_sums import Degree, to_power_sums
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial


def in_power_sums(f: ExpandedPolynomial, own: int = 1) -> PowerSumPolynomial:
    """f(x; y_1, …, y_m), symmetric in the y, as σ(x; p): exact; `own` = 0 when f has no own token."""
    kept, parts, numerators, repeated = f.orbits(own)
    m = parts.shape[1]
    width = int(np.count_nonzero(parts, axis=1).max(initial=0))
    scale = math.lcm(1, *set(repeated))
    values = [int(c) * (scale // t) for c, t in zip(numerators.tolist(), repeated, strict=True)]
    # The absolute weights on the way down from r parts sum to r!.
    fits = sum(map(abs, values)) * math.factorial(width) < WORD
    column = np.array(values, dtype=np.int64 if fits else object)[:, None]
    own_numbers = kept[:, 0] if own else np.zeros(len(parts), dtype=np.int64)
    out, factors, result = to_power_sums(f.table, own_numbers, parts[:, :width], column, m, add_degrees)
    return PowerSumPolynomial(
        m, len(f.table.vectors[0]), f.table.array(), out, factors, result[:, 0], f.denominator * scale
    )


def add_degrees(a: Degree, b: Degree) -> list[tuple[Degree, float]]:
    """y^a y^b = y^{a+b}."""
    return [(tuple(p + q for p, q in zip(a, b, strict=True)), 1)]

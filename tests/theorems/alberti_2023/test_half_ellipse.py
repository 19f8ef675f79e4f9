"""Boxes over the upper half of E_ρ: they cover it, none that is dropped meets it, and bisection loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.theorems.alberti_2023.half_ellipse import HalfEllipse, bisect


@pytest.mark.parametrize("rho", [1.03125, 2.0, 48.0])
def test_every_point_stays_in_a_box(rho: float):
    random = np.random.default_rng(0)
    w = random.uniform(1, rho, 2000) * np.exp(1j * random.uniform(0, np.pi, 2000))
    z = (w + 1 / w) / 2
    points = np.column_stack([z.real, np.abs(z.imag), random.uniform(-1, 1, 2000)])
    ellipse = HalfEllipse(rho)
    lo, hi = ellipse.cover(1)
    np.testing.assert_allclose(ellipse.widths(lo, hi), 1.0)
    for _ in range(3):
        meets = ellipse.meets(lo, hi)
        lo, hi = lo[meets], hi[meets]
        inside = (lo <= points[:, None]).all(2) & (points[:, None] <= hi).all(2)
        assert inside.any(1).all()
        lo, hi = bisect(lo, hi, ellipse.widths(lo, hi).argmax(1))


def test_boxes_beside_the_ellipse_are_dropped():
    ellipse = HalfEllipse(2.0)  # half axes 1.25 and 0.75
    lo, hi = np.array([[1.2, 0.5], [-1.3, 0.4], [0.0, 0.76]]), np.array([[1.3, 0.6], [-1.2, 0.5], [0.1, 0.8]])
    assert not ellipse.meets(lo, hi).any()
    assert ellipse.meets(np.array([[1.2, 0.0]]), np.array([[1.3, 0.1]])).all()

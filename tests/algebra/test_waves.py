"""cos and sin of 2πt/L, beside mpmath with 60 digits."""

from __future__ import annotations

import mpmath
import pytest

from sumformer.algebra.waves import ERROR, waves


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 12, 99, 360, 511, 1023])
def test_waves_are_the_nearest_numbers(length):
    with mpmath.workdps(60):
        for t, (c, s) in enumerate(zip(*waves(length), strict=True)):
            angle = mpmath.mpf(2 * t) / length
            assert abs(mpmath.cospi(angle) - c) <= ERROR
            assert abs(mpmath.sinpi(angle) - s) <= ERROR


def test_quarters_are_exact():
    assert waves(8)[0][::2] == (1.0, 0.0, -1.0, 0.0)
    assert waves(8)[1][::2] == (0.0, 1.0, 0.0, -1.0)

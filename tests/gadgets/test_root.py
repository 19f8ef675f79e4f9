"""√max(t, 0) by ReLU: the error is what was asked for, also left of 0, with as few units as the formula says."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.root import RootShape, modulus, root


def evaluated(gadget, t):
    ((units,),) = gadget.stages
    wide = np.maximum(t.astype(np.longdouble)[:, None] - units.knots.astype(np.longdouble), 0)
    return units.constants["out"] + wide @ units.writes["out"].astype(np.longdouble)


@pytest.mark.parametrize("tolerance", [0.2, 1e-2, 1e-4])
@pytest.mark.parametrize("hi", [1e-3, 2.0, 50.0])
def test_the_bound_holds_and_is_attained(hi, tolerance):
    gadget = root(Reading({"t": 1.0}, lo=-hi, hi=hi), "out", tolerance)
    t = np.concatenate([np.linspace(-hi, hi, 20_001), np.geomspace(1e-16 * hi, hi, 20_000)])
    off = np.abs(evaluated(gadget, t) - np.sqrt(np.maximum(t, 0)).astype(np.longdouble)).max()
    assert 0.99 * gadget.error <= off <= gadget.error <= tolerance * (1 + 1e-9)
    assert gadget.width <= RootShape(0.0, hi).knots_at(tolerance) + 1


def test_an_argument_that_errs():
    rng = np.random.default_rng(0)
    for lo in (-0.1, 0.0, 1e-6, 0.01, 1.0):
        for e in (0.0, 1e-12, 1e-4, 0.02, 3.0):
            t = np.append(lo, lo + rng.random(500) * 2)
            s = np.concatenate([t - e, t + e])
            moved = np.abs(np.sqrt(np.maximum(s, 0)) - np.sqrt(np.maximum(np.tile(t, 2), 0))).max()
            assert moved <= modulus(lo, e) + 1e-15
    assert modulus(0.0, 1e-4) == pytest.approx(1e-2)
    assert modulus(1.0, 1e-4) == pytest.approx(0.5e-4, rel=1e-3)


def test_what_cannot_be_built_says_so():
    with pytest.raises(DomainError, match="0 < hi"):
        root(Reading({"t": 1.0}, lo=-1.0, hi=0.0), "out", 1e-2)
    with pytest.raises(RefusedError, match="hidden units"):
        root(Reading({"t": 1.0}, lo=0.0, hi=1.0), "out", 1e-13)

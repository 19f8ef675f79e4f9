"""|g − P| on the whole range: the proved bound holds, is not loose, and a shift halves h²/8·max|g''|."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.algebra.interval import Interval
from sumformer.errors import DomainError
from sumformer.gadgets.chebyshev import chebyshev, polynomial
from sumformer.gadgets.elementary import ELEMENTARY, elementary
from sumformer.gadgets.function import approximate, gap, jet
from sumformer.gadgets.piecewise_linear import PiecewiseLinear
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.residual import ResidualGadget
from sumformer.targets import parse

RANGES = {
    "exp": (-1.0, 2.0),
    "log": (1e-3, 2.0),
    "sqrt": (0.0, 2.0),
    "tanh": (-3.0, 3.0),
    "sigmoid": (-6.0, 4.0),
    "reciprocal": (0.05, 1.0),
    "sin": (0.0, 5.0),
    "cos": (-2.0, 1.0),
}
NUMPY = {"reciprocal": lambda t: 1 / t, "sigmoid": lambda t: 1 / (1 + np.exp(-t))}


def values(name: str, t: np.ndarray) -> np.ndarray:
    return NUMPY[name](t) if name in NUMPY else getattr(np, name)(t)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("name", list(ELEMENTARY))
def test_every_elementary_function_is_met_and_not_by_far(name, tolerance):
    lo, hi = RANGES[name]
    found = approximate([ELEMENTARY[name]], lo, hi, [tolerance])
    t = np.unique(np.concatenate([np.linspace(lo, hi, 20_001), np.geomspace(max(lo, 1e-9), hi, 2000)]))
    worst = np.abs(found.functions[0](t) - values(name, t)).max()
    assert worst <= found.errors[0] <= tolerance
    if name != "sqrt" and found.functions[0].units > 8:  # at 0 the root's bound is the spread of its values
        assert found.errors[0] <= 4 * worst


def test_the_shift_halves_the_error_of_interpolation():
    square = parse("x**2", 1)
    found = approximate([square], -1.0, 1.0, [1e-3])
    h = 2.0 / found.functions[0].units
    assert found.errors[0] == pytest.approx(2 * h**2 / 16, rel=1e-6)


def test_shared_knots_serve_several_functions():
    functions = [chebyshev(k) for k in (2, 3, 5)]
    found = approximate(functions, -1.0, 1.0, [1e-3, 1e-3, 1e-2])
    assert len({p.knots.tobytes() for p in found.functions}) == 1
    t = np.linspace(-1, 1, 5001)
    for k, p, error in zip((2, 3, 5), found.functions, found.errors, strict=True):
        assert np.abs(p(t) - np.cos(k * np.arccos(t))).max() <= error


def test_a_series_is_one_function():
    g = polynomial([0.5, -1, 0.25])
    t = np.linspace(-1, 1, 101)
    p = approximate([g], -1.0, 1.0, [1e-4]).functions[0]
    assert np.abs(p(t) - (0.5 - t + 0.25 * (2 * t**2 - 1))).max() <= 1e-4


def test_values_at_knots_are_enclosed_tightly():
    from fractions import Fraction

    p = approximate([parse("sin(x)", 1)], 0.0, 3.0, [1e-7]).functions[0]
    ends, values = p.at_knots(3.0)
    exact, slope = Fraction(p.start), Fraction(0)
    for i, bend in enumerate(p.bends):
        slope += Fraction(bend)
        exact += slope * (Fraction(ends[i + 1]) - Fraction(ends[i]))
        assert Fraction(values.lo[i + 1]) <= exact <= Fraction(values.hi[i + 1])
    assert values.width().max() <= 1e-12


def test_the_gap_of_a_wrong_function_is_seen():
    g = parse("exp(x)", 1)
    p = approximate([g], 0.0, 1.0, [1e-3]).functions[0]
    assert gap(g, p, 1.0).max() <= 1e-3
    bends = p.bends.copy()
    bends[len(bends) // 2] += 0.05
    assert gap(g, PiecewiseLinear(p.knots, bends, p.start), 1.0).max() > 5e-3


def test_a_function_outside_its_domain_is_refused():
    with pytest.raises(DomainError, match="log"):
        approximate([parse("log(x)", 1)], -1.0, 1.0, [1e-2])


def test_jets_enclose_derivatives():
    found = jet(parse("exp(-x**2)*sin(3*x)/(2+x)", 1), Interval.point(np.array([0.3])))
    h = 1e-5

    def g(x):
        return np.exp(-(x**2)) * np.sin(3 * x) / (2 + x)

    slope, bend = (g(0.3 + h) - g(0.3 - h)) / (2 * h), (g(0.3 + h) - 2 * g(0.3) + g(0.3 - h)) / h**2
    assert found.first.mid()[0] == pytest.approx(slope, abs=1e-8)
    assert found.second.mid()[0] == pytest.approx(bend, abs=1e-4)
    assert found.value.lo[0] <= g(0.3) <= found.value.hi[0]


def test_the_gadget_is_a_module():
    import torch

    gadget = elementary("tanh", Reading({"a": 2.0}, -1.0, -3.0, 3.0), "out", 1e-3)
    t = torch.linspace(-1, 2, 1001, dtype=torch.float64)
    assert (ResidualGadget(gadget, ["a"], "out")(t[:, None]) - (2 * t - 1).tanh()).abs().max() <= gadget.error <= 1e-3

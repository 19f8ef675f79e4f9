"""g by products of saws: measured ≤ proved ≤ asked, layers and weights grow like powers of log 1/ε, and it can fail."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.gadgets.chebyshev import polynomial
from sumformer.gadgets.clenshaw import fold, halves, needed
from sumformer.gadgets.deep import deep
from sumformer.gadgets.elementary import ELEMENTARY, elementary
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.realisation import least
from sumformer.gadgets.residual import ResidualGadget
from sumformer.gadgets.saw import PREFERENCES
from sumformer.gadgets.series import series
from sumformer.gadgets.units import Gadget
from sumformer.targets import parse

RANGES = {
    "exp": [(-1.0, 2.0), (-6.0, 0.0)],
    "log": [(0.5, 2.0), (0.05, 2.0)],
    "sqrt": [(0.25, 4.0), (0.01, 1.0)],
    "tanh": [(-3.0, 3.0), (0.5, 1.0)],
    "sigmoid": [(-6.0, 4.0), (-1.0, 1.0)],
    "reciprocal": [(1.0, 2.0), (-1.0, -0.1)],
    "sin": [(0.0, 5.0)],
    "cos": [(-2.0, 1.0)],
}
CASES = [(name, *ends) for name, found in RANGES.items() for ends in found]


def values(name: str, t: torch.Tensor) -> torch.Tensor:
    return 1 / t if name == "reciprocal" else getattr(torch, name)(t)


def points(lo: float, hi: float, count: int = 801) -> torch.Tensor:
    """A grid, its two ends, and random points."""
    generator = torch.Generator().manual_seed(0)
    random = lo + (hi - lo) * torch.rand(count, dtype=torch.float64, generator=generator)
    return torch.cat([torch.linspace(lo, hi, count, dtype=torch.float64), random]).clamp(lo, hi)


@torch.no_grad()
def worst(gadget: Gadget, name: str, lo: float, hi: float) -> float:
    t = points(lo, hi)
    return float((ResidualGadget(gadget, ["a"], "out")(t[:, None]) - values(name, t)).abs().max())


def build(name: str, lo: float, hi: float, tolerance: float, prefer="parameters") -> Gadget:
    return elementary(name, Reading({"a": 1.0}, 0.0, lo, hi), "out", tolerance, prefer, "deep")


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize(("name", "lo", "hi"), CASES)
def test_measured_is_at_most_proved_is_at_most_asked(name, lo, hi, prefer):
    for tolerance in (1e-1, 1e-2, 1e-4, 1e-6)[: 3 if prefer == "depth" else 4]:
        gadget = build(name, lo, hi, tolerance, prefer)
        found = worst(gadget, name, lo, hi)
        assert found <= gadget.error <= tolerance
        if tolerance < 1e-2:
            assert gadget.error <= 8 * found  # the bound is not idle


@pytest.mark.parametrize(("name", "lo", "hi"), [(name, *found[0]) for name, found in RANGES.items()])
def test_layers_and_weights_grow_with_the_logarithm(name, lo, hi):
    """Twice the digits: in a row at most 2² times the layers (log² 1/ε), in the tree about twice; shallow 100 times."""
    coarse, fine = (build(name, lo, hi, tolerance, "width") for tolerance in (1e-4, 1e-8))
    assert worst(fine, name, lo, hi) <= fine.error <= 1e-8
    assert coarse.depth < fine.depth <= 4 * coarse.depth
    assert fine.width <= 6
    assert fine.nonzero <= 8 * coarse.nonzero
    few = [build(name, lo, hi, tolerance, "depth").depth for tolerance in (1e-4, 1e-8)]
    assert few[1] <= 2.5 * few[0] <= fine.depth
    shallow = [least(ELEMENTARY[name], Reading({"a": 1.0}, 0.0, lo, hi), tolerance).width for tolerance in (1e-4, 1e-8)]
    assert shallow[1] >= 90 * shallow[0]


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_each_preference_is_best_at_what_it_prefers(tolerance):
    for name, lo, hi in (("exp", -1.0, 2.0), ("tanh", -3.0, 3.0), ("reciprocal", 1.0, 2.0)):
        sizes = {prefer: build(name, lo, hi, tolerance, prefer).size for prefer in PREFERENCES}
        assert sizes["depth"].layers == min(size.layers for size in sizes.values())
        assert sizes["width"].width == min(size.width for size in sizes.values())
        assert sizes["parameters"].nonzero == min(size.nonzero for size in sizes.values())


@torch.no_grad()
@pytest.mark.parametrize("prefer", PREFERENCES)
def test_a_perturbed_weight_breaks_the_bound(prefer):
    gadget = build("exp", -1.0, 2.0, 1e-4, prefer)
    module, t = ResidualGadget(gadget, ["a"], "out"), points(-1.0, 2.0)
    assert (module(t[:, None]) - t.exp()).abs().max() <= gadget.error
    broken = []
    for layer in module.layers:
        weights = layer[2].weight.view(-1)
        at = int(weights.abs().argmax())
        kept = float(weights[at])
        weights[at] *= 1.05
        broken.append(bool((module(t[:, None]) - t.exp()).abs().max() > gadget.error))
        weights[at] = kept
    assert all(broken[:3])
    assert sum(broken) > len(broken) / 2  # the last layers of a saw add less than the bound
    assert (module(t[:, None]) - t.exp()).abs().max() <= gadget.error


def test_exact_arithmetic_stays_inside_the_same_bound():
    """The network in rationals, against enclosures of e^t: no float64 hides an error."""
    flint = pytest.importorskip("flint")
    gadget = build("exp", -1.0, 2.0, 1e-8)
    places = ["a", "out", *gadget.workspace]
    for t in (Fraction(-1), Fraction(2), Fraction(1, 3), Fraction(-5, 7), Fraction(1)):
        z = dict.fromkeys(places, Fraction(0)) | {"a": t}
        for stage in gadget.stages:
            added = dict.fromkeys(places, Fraction(0))
            for units in stage:
                at = sum((Fraction(w) * z[name] for name, w in units.reads.items()), Fraction(0))
                for i, bias in enumerate(units.offset - units.knots):
                    active = max(at + Fraction(float(bias)), Fraction(0))
                    for name, bends in units.writes.items():
                        added[name] += Fraction(float(bends[i])) * active
                for name, constant in units.constants.items():
                    added[name] += Fraction(constant)
            z = {name: z[name] + added[name] for name in places}
        exact = flint.arb(flint.fmpq(t.numerator, t.denominator)).exp()
        off = abs(flint.arb(flint.fmpq(z["out"].numerator, z["out"].denominator)) - exact)
        assert off < flint.arb(gadget.error)


ANY = (
    st.sampled_from(sorted(ELEMENTARY)),
    st.floats(-4.0, 4.0),
    st.floats(0.01, 6.0),
    st.floats(1.0, 7.0),
    st.sampled_from(["width", "parameters"]),
)


def check(name, lo, length, digits, prefer):
    """Refused, or met."""
    if name in ("log", "sqrt", "reciprocal"):
        lo = abs(lo) + 0.02
    hi, tolerance = lo + length, 10.0**-digits
    try:
        gadget = build(name, lo, hi, tolerance, prefer)
    except RefusedError:
        return
    assert worst(gadget, name, lo, hi) <= gadget.error <= tolerance


@settings(max_examples=15, deadline=None)
@given(*ANY)
def test_any_range(name, lo, length, digits, prefer):
    check(name, lo, length, digits, prefer)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(*ANY)
def test_many_ranges(name, lo, length, digits, prefer):
    check(name, lo, length, digits + 2, prefer)


def test_the_argument_may_be_any_affine_reading():
    reading = Reading({"a": 2.0, "b": -1.0}, 0.5, -3.0, 3.0)
    gadget = elementary("tanh", replace(reading, size=6.0), "out", 1e-5, "parameters", "deep")
    t = torch.linspace(-1, 1, 1001, dtype=torch.float64)
    x = torch.stack([t, -0.5 * t], -1)
    got = ResidualGadget(gadget, ["a", "b"], "out")(x)
    assert (got - (2.5 * t + 0.5).tanh()).abs().max() <= gadget.error <= 1e-5
    with pytest.raises(InputError, match="a reading with a size"):
        elementary("tanh", reading, "out", 1e-5, "parameters", "deep")


def test_polynomials_and_constants_are_functions_too():
    g = polynomial([0.5, -1, 0.25, 0, 0.125])
    t = torch.linspace(-1, 1, 1001, dtype=torch.float64)
    gadget = deep(g, Reading({"a": 1.0}, 0.0, -1.0, 1.0), "out", 1e-7)
    wanted = np.polynomial.chebyshev.chebval(t.numpy(), [0.5, -1, 0.25, 0, 0.125])
    assert np.abs(ResidualGadget(gadget, ["a"], "out")(t[:, None]).detach().numpy() - wanted).max() <= gadget.error
    for source, wanted in (("3", 3 + 0 * t), ("2*x + 1", 2 * t + 1), ("x", t)):
        gadget = deep(parse(source, 1), Reading({"a": 1.0}, 0.0, -1.0, 1.0), "out", 1e-9)
        assert (ResidualGadget(gadget, ["a"], "out")(t[:, None]) - wanted).abs().max() <= gadget.error <= 1e-9


@pytest.mark.parametrize(
    ("name", "lo", "hi", "reason"),
    [
        ("sqrt", 0.0, 1.0, "analytic"),
        ("log", 1e-6, 1.0, "analytic|degree"),
        ("reciprocal", 1e-4, 1.0, "degree|analytic"),
    ],
)
def test_near_a_singularity_it_is_refused(name, lo, hi, reason):
    with pytest.raises(RefusedError, match=reason) as refused:
        build(name, lo, hi, 1e-4)
    assert "shallow" in str(refused.value)


def test_outside_the_domain_and_beyond_float64():
    with pytest.raises(DomainError, match="log"):
        build("log", -1.0, 1.0, 1e-2)
    with pytest.raises(DomainError, match="lo < hi"):
        build("exp", 1.0, 1.0, 1e-2)
    with pytest.raises(RefusedError, match="shallow") as refused:
        build("exp", -1.0, 2.0, 1e-12)
    reachable = refused.value.reachable
    assert 1e-12 < reachable < 1e-8
    assert build("exp", -1.0, 2.0, reachable * 1.5).error <= reachable * 1.5


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 12])
def test_a_folded_series_is_the_same_polynomial(m):
    c = np.random.default_rng(0).normal(size=12) * 0.5 ** np.arange(12)
    f, t = fold(c.tolist(), m), np.linspace(-1, 1, 101)
    T = np.polynomial.chebyshev.chebvander(t, 12).T
    y = np.polynomial.chebyshev.chebvander(T[m], len(f.d)).T if m <= 12 else T
    total = sum(w * y[j] * T[r] for j, row in enumerate(f.d) for r, w in enumerate(row))
    assert np.abs(total - np.polynomial.chebyshev.chebval(t, c)).max() <= 1e-13
    assert f.degree == 11
    assert all(set(halves(r)) - {1} <= set(needed(f)) for r in needed(f))


def test_the_rest_of_a_series_is_covered():
    for name, lo, hi in CASES:
        s = series(ELEMENTARY[name], lo, hi, 1e-6)
        for budget in (1e-2, 1e-6):
            c, error = s.cut(budget)
            t = np.linspace(-1, 1, 4001)
            wanted = values(name, torch.from_numpy(s.centre + s.radius * t)).numpy()
            found = np.abs(np.polynomial.chebyshev.chebval(t, c) - wanted).max()
            assert found <= error <= budget
            assert error <= 30 * found

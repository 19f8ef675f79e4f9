"""Squares, products, quotients, exact gadgets: the proved error holds, is attained, and follows the preference."""

from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.gadgets.extremum import absolute, extremum
from sumformer.gadgets.identity import identity
from sumformer.gadgets.look_up import bump, look_up, step
from sumformer.gadgets.product import product
from sumformer.gadgets.quotient import quotient
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.residual import ResidualGadget
from sumformer.gadgets.saw import PREFERENCES, choose
from sumformer.gadgets.square import square

pytestmark = pytest.mark.usefixtures("no_gradients")
A, B = Reading({"a": 1.0}), Reading({"b": 1.0})


@pytest.fixture
def no_gradients():
    with torch.no_grad():
        yield


def pairs(a_range, b_range, count=20_000):
    unit = torch.rand(count, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit[:4] = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    low, high = (torch.tensor([r[i] for r in (a_range, b_range)], dtype=torch.float64) for i in (0, 1))
    return low + (high - low) * unit


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("tolerance", [10.0, 1e-1, 1e-3, 1e-7])
@pytest.mark.parametrize(
    "ranges", [((-1.0, 1.0), (-1.0, 1.0)), ((0.5, 3.0), (-2.0, -1.5)), ((-1e-3, 1e-3), (7.0, 9.0))]
)
def test_products(ranges, tolerance, prefer):
    gadget = product(A.within(*ranges[0]), B.within(*ranges[1]), "out", tolerance, prefer)
    x = pairs(*ranges)
    worst = float((ResidualGadget(gadget, ["a", "b"], "out")(x) - x[:, 0] * x[:, 1]).abs().max())
    assert worst <= gadget.error * (1 + 1e-9) + 1e-15
    assert gadget.error <= tolerance * (1 + 1e-9)
    if gadget.error > 1e-12:
        assert gadget.error <= 1.6 * worst + 1e-12


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-8])
def test_squares(tolerance, prefer):
    gadget = square(Reading({"a": 2.0}, 1.0, -3.0, 5.0), "out", tolerance, prefer)
    a = torch.linspace(-2, 2, 40_001, dtype=torch.float64)
    worst = float((ResidualGadget(gadget, ["a"], "out")(a[:, None]) - (2 * a + 1) ** 2).abs().max())
    assert worst <= gadget.error * (1 + 1e-9) + 1e-13
    assert gadget.error <= tolerance


def test_preferences_differ():
    shapes = {prefer: choose(1e-9, prefer) for prefer in PREFERENCES}
    assert shapes["depth"].layers < shapes["parameters"].layers < shapes["width"].layers
    assert shapes["width"].pieces == 2
    assert shapes["parameters"].nonzero(2) < shapes["depth"].nonzero(2)


def test_quotients_over_a_steep_denominator():
    gadget = quotient(A, B.within(1e-3, 2.0), (-1.0, 2.0), "out", 1e-2)
    generator = torch.Generator().manual_seed(1)
    b = 10 ** (-3 + 3.3 * torch.rand(20_000, dtype=torch.float64, generator=generator))
    q = -1 + 3 * torch.rand(20_000, dtype=torch.float64, generator=generator)
    worst = float((ResidualGadget(gadget, ["a", "b"], "out")(torch.stack([q * b, b], -1)) - q).abs().max())
    assert worst <= gadget.error <= 1e-2
    assert gadget.depth == 2
    with pytest.raises(InputError, match="denominator > 0"):
        quotient(A, B.within(-1.0, 2.0), (0.0, 1.0), "out", 1e-2)


def test_exact_gadgets():
    x = pairs((-3.0, 2.0), (-1.0, 4.0))
    a, b = x[:, 0], x[:, 1]
    assert torch.allclose(ResidualGadget(absolute(A + 0.5, "out"), ["a", "b"], "out")(x), (a + 0.5).abs())
    for op, wanted in (("max", torch.maximum(a, b)), ("min", torch.minimum(a, b))):
        got = ResidualGadget(extremum(op, A, B.within(-1.0, 4.0), "out"), ["a", "b"], "out")(x)
        assert torch.allclose(got, wanted, atol=1e-14)
    affine = identity((A * 2.0 - B + 0.25).within(-10.0, 10.0), {"out": 3.0})
    assert torch.allclose(ResidualGadget(affine, ["a", "b"], "out")(x), 3 * (2 * a - b + 0.25), atol=1e-13)


def test_tables_are_exact_off_the_ramps():
    t = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    edges, heights, ramp = [0.25, 0.5, 0.8], [1.0, -2.0, 0.5, 3.0], 0.01
    gadget = look_up(A.within(0.0, 1.0), edges, heights, ramp, "out")
    got = ResidualGadget(gadget, ["a"], "out")(t[:, None])
    cell = torch.bucketize(t, torch.tensor(edges, dtype=torch.float64), right=True)
    off = torch.stack([(t - e).abs() > ramp / 2 for e in edges]).all(0)
    assert torch.allclose(got[off], torch.tensor(heights, dtype=torch.float64)[cell][off], atol=1e-12)
    assert got.min() >= -2 - 1e-12
    assert got.max() <= 3 + 1e-12
    up = ResidualGadget(step(A.within(0.0, 1.0), 0.5, 0.01, "out"), ["a"], "out")(t[:, None])
    assert up[0] == 0
    assert up[-1] == pytest.approx(1)
    hill = ResidualGadget(bump(A.within(0.0, 1.0), (0.3, 0.6), 0.01, "out"), ["a"], "out")(t[:, None])
    assert hill[4500] == pytest.approx(1)
    assert abs(hill[-1]) < 1e-12
    with pytest.raises(InputError, match="do not meet"):
        look_up(A.within(0.0, 1.0), [0.5, 0.505], [0.0, 1.0, 2.0], 0.01, "out")

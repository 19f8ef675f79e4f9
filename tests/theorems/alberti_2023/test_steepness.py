"""L_c and ℓ_c are at least every slope, and near the largest."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from sumformer.targets import parse
from sumformer.targets.domain import Box
from sumformer.targets.normalised_slopes import log_of
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.mesh_choice import Choice, Slant
from sumformer.theorems.alberti_2023.mesh_slants import Slants
from sumformer.theorems.alberti_2023.steepness import steepness

SQUARE = Box((Fraction(-1), Fraction(-1, 2)), (Fraction(1), Fraction(1, 2)))


@pytest.mark.parametrize(
    ("source", "c", "slope"),
    [
        ("abs(x[0]) + 3*abs(x[1])", 1, 3.0),
        ("norm(x)", 0, 1.0),
        ("exp(-5*norm(x))", 0, 5.0),
        ("max(0, 1 - norm(x)/0.2)", 1, 5.0),
        ("sin(x[0])*x[1]", 0, 1.0),
        ("sin(x[0])*x[1]", 1, 1.0),
    ],
)
def test_slopes(source, c, slope):
    found = steepness(parse(source, 2), SQUARE, c)
    assert found is not None
    assert slope * (1 - 1e-9) <= found <= 1.06 * slope


@pytest.mark.parametrize("source", ["sqrt(abs(x[0]))", "log(abs(x[0]))", "1/(x[0] + x[1])"])
def test_there_is_none(source):
    assert steepness(parse(source, 2), SQUARE, 0) is None


def test_of_a_logarithm():
    k = parse("2*exp(-7*abs(x[0]))/(3 + abs(x[1]))", 2)
    assert 7 <= (steepness(log_of(k), SQUARE, 0) or 0) <= 7.4
    assert 1 / 3 <= (steepness(log_of(k), SQUARE, 1) or 0) <= 0.36


def laplace(source="exp(-10*abs(x[0] - y[0]))"):
    return Slants(KernelStudy(parse(source, 1, free_y=True), Box((Fraction(0),), (Fraction(1),))))


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_meshes_are_as_fine_as_asked_for(tolerance):
    absolute, relative = laplace().choices(tolerance, tolerance)
    assert 0.8 * tolerance <= absolute.remainder <= tolerance
    assert 0.6 * tolerance <= relative.relative <= tolerance


def test_what_falls_to_nothing_has_no_share():
    (absolute,) = laplace("max(0, 1 - abs(x[0] - y[0]))").choices(1e-3, 1e-3)
    assert absolute.relative == inf


@pytest.mark.parametrize("m", [60, 137])
def test_the_remainder_holds_between_nodes(m):
    """Tokens everywhere in their intervals: the largest error of the interpolant of e^{−8|z|} on [0, 1]."""
    mesh = Choice(2, (m,), slants=(Slant(4.0, 4.0),))  # per radius, which is 1/2
    t = np.linspace(0, 1, 40 * m + 1)
    nodes = np.linspace(0, 1, m + 1)
    weights = np.maximum(0, 1 - np.abs(t[:, None] - nodes) * m)
    exact = np.exp(-8 * np.abs(t[:, None] - t))
    approximated = weights @ np.exp(-8 * np.abs(nodes[:, None] - nodes)) @ weights.T
    off = np.abs(approximated - exact)
    assert 0.5 * mesh.remainder <= off.max() <= mesh.remainder
    assert 0.5 * mesh.relative <= (off / exact).max() <= mesh.relative

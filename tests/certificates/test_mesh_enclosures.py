"""What the checker of meshes knows of stencils, differences, slopes and strips, beside what is known otherwise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from sumformer.certificates.checker.differences import DifferenceKernel
from sumformer.certificates.checker.mesh.lagrange import lebesgue, node_polynomial
from sumformer.certificates.checker.mesh.slants import steepest
from sumformer.certificates.checker.mesh.strip import maximum_on_strip
from sumformer.certificates.checker.verification import Unproved
from sumformer.nn.mesh import Mesh
from sumformer.targets.parser import parse


@pytest.mark.parametrize("width", range(2, 17, 2))
def test_the_lebesgue_constant_and_the_node_polynomial_bound_what_they_should(width: int) -> None:
    r = torch.linspace(0, 1, 1001, dtype=torch.float64)
    most = float(Mesh(8, width).weights(r).abs().sum(-1).max())
    assert most <= float(lebesgue(width)) * (1 + 1e-14) <= most * (1 + 1e-12)
    s = width // 2 - 1
    nodes = torch.stack([r + s - b for b in range(width)]).prod(0).abs()
    assert float(nodes.max()) == pytest.approx(float(node_polynomial(width)))


@pytest.mark.parametrize(
    ("source", "d", "coordinates"),
    [
        ("exp(-norm2(x - y))", 2, {0, 1}),
        ("sqrt((x[1] - y[1])**2 + 1)", 2, {1}),
        ("cos(3*x[0] + 1 - 3*y[0])", 1, {0}),
        ("tanh((x - y)/2)", 1, {0}),
        ("exp((y[0] - x[0])/3 + x[1]/2 - 0.5*y[1])", 2, {0, 1}),
    ],
)
def test_functions_of_differences_are_recognised(source: str, d: int, coordinates: set[int]) -> None:
    assert DifferenceKernel.of(parse(source, d, free_y=True), d).coordinates == coordinates


@pytest.mark.parametrize("source", ["x[0]*y[0]", "cos(x[0] + y[0])", "cos(3*x[0] - 2*y[0])", "exp(x[0] - y[1])"])
def test_other_functions_are_not(source: str) -> None:
    with pytest.raises(Unproved):
        DifferenceKernel.of(parse(source, 2, free_y=True), 2)


def test_places_in_an_interval_are_16_27_of_it_away_at_most() -> None:
    """E|a − r − b + s| for a, b ∈ {0, 1} with means r, s: what the remainder of a kernel with corners rests on."""
    r = np.linspace(0, 1, 601)[:, None]
    s = r.T
    away = sum((r if a else 1 - r) * (s if b else 1 - s) * np.abs(a - r - b + s) for a in (0, 1) for b in (0, 1))
    assert 16 / 27 - 1e-5 <= away.max() <= 16 / 27 + 1e-15


@pytest.mark.parametrize(
    ("source", "of_log", "slope"),
    [
        ("exp(-10*abs(x - y))", False, 10.0),
        ("exp(-10*abs(x - y))", True, 10.0),
        ("3*(x - y + 4)**2*exp(-abs(x - y))", True, 2.0),
        ("tanh(4*(x - y))", False, 4.0),
        ("((x - y) + 5)*3", True, 1 / 3),
        ("max(0, 1 - abs(x - y))", False, 1.0),
    ],
)
def test_slopes_are_enclosed(source: str, of_log: bool, slope: float) -> None:
    kernel = DifferenceKernel.of(parse(source, 1, free_y=True), 1)
    assert slope <= steepest(kernel, [0], [Fraction(1)], 0, 1.02 * slope, of_log=of_log) <= 1.02 * slope


@pytest.mark.parametrize(("source", "of_log"), [("sqrt(abs(x - y))", False), ("max(0, 1 - abs(x - y))", True)])
def test_without_a_slope_nothing_is_enclosed(source: str, of_log: bool) -> None:
    kernel = DifferenceKernel.of(parse(source, 1, free_y=True), 1)
    assert steepest(kernel, [0], [Fraction(1)], 0, 10.0, of_log=of_log) == np.inf


def test_the_maximum_on_a_strip_encloses_what_is_known() -> None:
    """|e^{−(a+ib)²}| = e^{b² − a²}: the largest is at i δ. Beyond ±π the sigmoid has poles."""
    bell = DifferenceKernel.of(parse("exp(-(x - y)**2)", 1, free_y=True), 1)
    found = maximum_on_strip(bell, [0], [Fraction(1, 8)], [20], 0, 0.5, 1.3)
    assert np.exp(0.25) <= found <= 1.3
    step = DifferenceKernel.of(parse("sigmoid(x - y)", 1, free_y=True), 1)
    assert maximum_on_strip(step, [0], [Fraction(1, 8)], [20], 0, 3.0, 20.0) <= 20
    with pytest.raises(Unproved):
        maximum_on_strip(step, [0], [Fraction(1, 8)], [20], 0, 3.2, 20.0)

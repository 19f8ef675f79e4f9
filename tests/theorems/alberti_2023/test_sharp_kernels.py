"""Kernels of differences: half the variables in the proof, thin ellipses, high degrees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from sumformer.certificates.checker import check
from sumformer.certificates.checker.ellipse import Variables, maximum_on_ellipse
from sumformer.errors import DomainError
from sumformer.targets import parse, to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.components import component
from sumformer.theorems.alberti_2023.differences import as_difference
from sumformer.theorems.alberti_2023.ellipse import ellipse_maximum
from sumformer.theorems.alberti_2023.interpolation import Studies
from sumformer.theorems.alberti_2023.plan import _least_truncation
from sumformer.theorems.construction import construct

HALF = Fraction(1, 2)


def kernel(source, d):
    return component(parse(source, d, free_y=True), 0)


@pytest.mark.parametrize(
    ("source", "d", "found"),
    [
        ("exp(-4*(x - y)**2)", 1, "exp(-4*x[0]**2)"),
        ("sigmoid((y - x)/0.1)", 1, "sigmoid(-x[0]/0.1)"),
        ("1/(norm2(x - y) + 0.1)", 2, "1/(x[0]**2 + x[1]**2 + 0.1)"),
        ("abs(1.5 + x - y)", 1, "abs(x[0] + 1.5)"),
        ("exp(2*x - 0.1 - y/0.5)", 1, "exp(2*x[0] - 0.1)"),
        ("tanh((x[1] - 2*x[0]) + (2*y[0] - y[1]))", 2, "tanh(-2*x[0] + x[1])"),
        ("exp(-(x - y)**2)*x", 1, None),
        ("exp(x - y + y - x)", 1, None),
        ("exp(2*x - y)", 1, None),
        ("exp(x - y)*sin(x + y)", 1, None),
        ("exp(x*y)", 1, None),
        ("sin(x[0] - y[1])", 2, None),
        ("sin(x[0] - y[0] + y[1])", 2, None),
        ("1/(x + 2)", 1, None),
    ],
)
def test_which_kernels_are_functions_of_the_difference(source, d, found):
    got = as_difference(kernel(source, d))
    assert (None if got is None else to_source(got)) == (None if found is None else to_source(kernel(found, d)))


def rim(rho, count=200):
    angle = np.linspace(0, 2 * np.pi, count)
    return (rho * np.exp(1j * angle) + np.exp(-1j * angle) / rho) / 2


FORMULAS = {
    ("1/((x - y)**2 + 0.01)", 1): lambda z: 1 / (z[0] ** 2 + 0.01),
    ("sigmoid((x - y)/0.05)", 1): lambda z: 1 / (1 + np.exp(-z[0] / 0.05)),
    ("1/(norm2(x - y) + 0.1)", 2): lambda z: 1 / (z[0] ** 2 + z[1] ** 2 + 0.1),
    ("tanh(x[0] - y[0])/(2 + x[1] - y[1])", 2): lambda z: np.tanh(z[0]) / (2 + z[1]),
}


@pytest.mark.parametrize(("source", "d"), FORMULAS)
@pytest.mark.parametrize("rho", [1.0625, 1.15])
def test_both_maxima_are_above_what_is_attained_and_not_far(source, d, rho):
    """Sampled: t on the rim of the ellipse in one coordinate of x or y, all other coordinates in the box."""
    k, box = kernel(source, d), Box.parse("0:1", d)
    entries = tuple((name, c, HALF, HALF) for name in ("x", "y") for c in range(d))
    for variable in range(2 * d):
        c, sign = variable % d, 1 if variable < d else -1
        axes = [np.linspace(-2, 2, 41)] * d
        axes[c] = (rim(rho)[:, None] - np.linspace(-1, 1, 41)[None, :]).ravel()
        z = np.meshgrid(*axes, indexing="ij")
        attained = np.abs(FORMULAS[source, d]([sign * part / 2 for part in z])).max()
        mine = ellipse_maximum(k, box, tuple(range(d)), variable, rho)
        assert mine is not None
        assert attained <= mine <= 40 * attained
        theirs = maximum_on_ellipse(k, Variables(entries, d), variable, rho, 2 * mine)
        assert attained <= theirs <= 2 * mine


def test_the_checker_takes_no_difference_where_the_boxes_differ():
    """x ∈ [0, 1] and y ∈ [10, 11]: 1/(x − y + 20) is at most 1/9.4 for ρ = 1.5, and ∞ about 0 in a wider set."""
    k = kernel("1/(x - y + 20)", 1)
    entries = (("x", 0, HALF, HALF), ("y", 0, Fraction(21, 2), HALF))
    assert maximum_on_ellipse(k, Variables(entries, 1), 0, 1.5, 1.0) <= 1.0
    moved = (("x", 0, HALF, HALF), ("y", 0, Fraction(41, 2), HALF))  # x − y + 20 reaches 0 here, not about 0
    with pytest.raises(Exception, match="not shown to be analytic"):
        maximum_on_ellipse(k, Variables(moved, 1), 0, 1.5, 1.0)


def test_the_lowest_degree_that_is_enough():
    interpolant = Studies(Box.unit(1)).of(kernel("1/((x - y)**2 + 0.01)", 1)).interpolate(1e-3)
    found = _least_truncation(interpolant, 0.5, "float64")
    degree = found.coefficients.shape[0] - 1
    assert found.dropped + interpolant.remainder <= 0.5
    assert interpolant.truncate(degree - 1, "float64").dropped + interpolant.remainder > 0.5


@pytest.mark.parametrize("source", ["mean(abs(x + y))", "mean(max(x, y))"])
def test_a_kernel_with_a_kink_is_refused_with_what_to_write_instead(source):
    with pytest.raises(DomainError, match=r"within 0.01 of sqrt\(t\*\*2 \+ 0.0001\)"):
        construct(source, 1e-2, box="-1:1", route="sums")
    assert construct("mean(y) + mean(max(x - y, 0))", 1e-2, box="-1:1").certificate.route == "mesh"


@pytest.mark.parametrize(
    ("source", "d", "epsilon", "most"),
    [
        ("mean(sigmoid((x - y)/0.01))", 1, 1e-3, 120),
        ("mean(sqrt((x - y)**2 + 0.0001))", 1, 1e-3, 85),
        ("mean(exp(-2000*(x - y)**2))", 1, 1e-3, 130),
        ("mean((y - x)/(norm2(y - x) + 0.15)**1.5)", 2, 1e-2, 400),
    ],
)
def test_sharp_kernels_are_certified(tmp_path, source, d, epsilon, most):
    c = construct(source, epsilon, d=d)
    assert c.certificate.latent_dimension <= most
    X = torch.rand(4, 60, d, dtype=torch.float64)
    X[1] = X[1] * 0.02 + 0.4
    X[2] = (X[2] > 0.5).double()
    assert (c(X) - c.target(X)).abs().max() <= c.certificate.total
    c.save(tmp_path / "net")
    verdict = check(tmp_path / "net")
    assert verdict.verified, verdict.failures

"""Interpolants: what is proved holds on dense samples, and is not far above them; what is not analytic is refused."""

import numpy as np
import pytest
import torch

from sumformer.algebra import chebyshev
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import parse
from sumformer.targets.domain import Box
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.torch_evaluation import TorchOperations
from sumformer.theorems.alberti_2023.ellipse import ellipse_maximum
from sumformer.theorems.alberti_2023.interpolation import Studies


def values(kernel, x, y):
    ops = TorchOperations(torch.float64, torch.device("cpu"))
    env = Environment(x=torch.from_numpy(x), y=torch.from_numpy(y))
    return evaluate(kernel, ops, env)[..., 0].numpy()


@pytest.mark.parametrize(
    ("source", "box", "degree"),
    [
        ("exp(8*(x - 0.5)*(y - 0.5))", "0:1", 6),
        ("exp(-4*(x - y)**2)", "0:1", 9),
        ("sigmoid((x - y)/0.1)", "0:1", 12),
        ("sqrt((x - y)**2 + 0.25)**(-3)", "0:1", 10),
        ("cos(3*x*y)/(2 + x)", "-1:2", 12),
        ("log(1 + x*y)", "0.1:0.9", 5),
    ],
)
def test_the_proved_error_holds_and_is_tight(source, box, degree):
    box = Box.parse(box, 1)
    kernel = parse(source, 1, free_y=True)
    study = Studies(box).of(kernel)
    interpolant = study.interpolate(1e-8)
    cut = interpolant.truncate(degree, "float64")
    t = np.cos(np.linspace(0, np.pi, 257))
    centre, radius = float(box.centre[0]), float(box.radius[0])
    x, y = np.meshgrid(centre + radius * t, centre + radius * t, indexing="ij")
    exact = values(kernel, x[..., None], y[..., None])
    observed = np.abs(exact - chebyshev.evaluate(cut.coefficients, [t, t])).max()
    bound = cut.dropped + interpolant.remainder
    assert observed <= bound <= 1.5 * observed + 3e-8
    low, high = study.range
    assert low <= exact.min() <= exact.max() <= high
    assert high - low <= 1.3 * (exact.max() - exact.min())


def test_rounding_to_float32_is_part_of_what_was_dropped():
    interpolant = Studies(Box.unit(1)).of(parse("exp(x*y)", 1, free_y=True)).interpolate(1e-12)
    full = interpolant.degree
    assert 1e-9 < interpolant.truncate(full, "float32").dropped < 1e-6
    assert interpolant.truncate(full, "float64").dropped < 1e-10


def test_equal_kernels_in_other_coordinates_share_their_study():
    studies = Studies(Box.parse("0:1,0:1,0:2", 3))
    first, second, third = (studies.of(parse(f"exp(x[{c}]*y[{c}])", 3, free_y=True)) for c in range(3))
    assert first is second
    assert third is not first


@pytest.mark.parametrize("source", ["abs(x - y)", "sqrt(x - y + 1)", "1/(x - y + 1)", "max(x, y)", "log(x + y)"])
def test_what_is_not_analytic_is_refused(source):
    with pytest.raises(DomainError):
        Studies(Box.unit(1)).of(parse(source, 1, free_y=True)).interpolate(1e-3)


def test_a_degree_beyond_the_budget_is_refused():
    with pytest.raises(RefusedError, match="beyond the budget"):
        Studies(Box.unit(1)).of(parse("1/((x[0] - y[0])**2 + 0.00003)", 1, free_y=True)).interpolate(1e-9)


def test_too_many_coordinates_are_refused():
    with pytest.raises(RefusedError, match="mixes 4 coordinates"):
        Studies(Box.unit(4)).of(parse("1/(1 + norm2(x - y))", 4, free_y=True))


@pytest.mark.parametrize("rho", [1.25, 2.0, 3.5])
def test_an_ellipse_maximum_is_above_the_rim(rho):
    kernel, box = parse("exp(-4*(x - y)**2)", 1, free_y=True), Box.unit(1)
    angle = np.linspace(0, 2 * np.pi, 400)
    z = 0.5 + 0.25 * (rho * np.exp(1j * angle) + np.exp(-1j * angle) / rho)
    rim = np.abs(np.exp(-4 * (z[:, None] - np.linspace(0, 1, 101)[None, :]) ** 2)).max()
    bound = ellipse_maximum(kernel, box, (0,), 0, rho)
    assert bound is not None
    assert rim <= bound <= 40 * rim


def test_an_ellipse_around_a_pole_has_no_maximum():
    kernel, box = parse("1/((x - y)**2 + 0.25)", 1, free_y=True), Box.unit(1)  # poles 0.5i from the real axis
    assert ellipse_maximum(kernel, box, (0,), 0, 1.9) is not None
    assert ellipse_maximum(kernel, box, (0,), 0, 2.7) is None

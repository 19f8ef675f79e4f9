"""The checker's slopes of Σ w a/Σ w: found where they apply, true on cells, sharper than the quotient rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.certificates.checker.grid.weighted_mean import weighted_mean
from sumformer.targets import parse, target

GAUSSIAN = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"


@pytest.mark.parametrize(
    ("source", "d", "weight", "rest"),
    [
        (GAUSSIAN, 2, [1], [1]),
        ("mean(y*exp(x*y)*3)/mean(-2*exp(x*y))", 1, [1], [1]),
        (
            "sum(exp(y)*(y + 1)*y*y/(1 + y**2))/sum(exp(y)/(1 + y**2))",
            1,
            [1, -1],
            [1, 2],
        ),
        ("sum_others(exp(y)**3*y)/sum_others(exp(y)**2)", 1, [2], [1, 1]),
        ("sum(exp(y))/sum(exp(y))", 1, [1], []),
        ("sum(exp(y)*y)/sum(exp(y)*exp(2*y))", 1, [1, 1], [1, -1]),
        ("sum((x*exp(y)/-2)**3*y)/sum((x*exp(y))**2)", 1, [2, 2], [1, 1, 1]),
        ("sum(exp(y)*y/(3*(-sin(x))))/sum(exp(y))", 1, [1], [1, -1]),
    ],
)
def test_weighted_means_are_found(source: str, d: int, weight: list[int], rest: list[int]):
    found = weighted_mean(parse(source, d))
    assert found is not None
    assert sorted(found.weight.values()) == sorted(weight)
    assert sorted(found.rest.values()) == sorted(rest)
    assert isinstance(found.constant, Fraction)


@pytest.mark.parametrize(
    "source",
    [
        "sum(exp(y)*y)/mean(exp(y))",
        "sum(exp(y)*y)/sum_others(exp(y))",
        "sum(exp(y)*y)/sum(exp(2*y))",
        "sum(exp(y) + y)/sum(exp(y))",
        "sum(exp(x)*y)/sum(exp(x)*exp(y))",
        "max(exp(y)*y)/max(exp(y))",
        "sum(0*y*y)/sum(y)",
        "sum(exp(y)*y)*sum(exp(y))",
    ],
)
def test_others_are_left_to_the_quotient_rule(source: str):
    assert weighted_mean(parse(source, 1)) is None


CASES = [
    (GAUSSIAN, 1, 3, "5:6"),
    (GAUSSIAN, 2, 3, "-1:1"),
    (GAUSSIAN, 1, 14, "-1:1"),
    ("mean(exp(3*x*y)*sin(y))/mean(exp(3*x*y))", 1, 4, "-1:1"),
    ("sum_others(exp(-(x - y)**2)*y)/sum_others(exp(-(x - y)**2))", 2, 3, "0:2"),  # by coordinate
    ("sum_others(y*y/(1 + abs(y)))/sum_others(y/(1 + abs(y)))", 1, 13, "1:2"),
    ("sum(exp(x*y - max(x*y))*(y - mean(y)))/sum(exp(x*y - max(x*y)))", 1, 3, "-1:1"),
    ("tanh(mean(-y*x*y*sigmoid(y - x))/mean(-y*sigmoid(y - x)))*x", 1, 3, "0.5:2"),
    ("x + sum(exp(abs(x - y))*(1 + mean(y))*y)/sum(exp(abs(x - y))*(1 + mean(y)))", 1, 3, "0:1"),
]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("source", "d", "n", "box"), CASES)
def test_slopes_on_cells_hold(source: str, d: int, n: int, box: str, own: bool):
    """Σ r |∂f/∂x| by automatic differentiation at points of a cell is at most the cell's bound; nothing is plainer."""
    f = target(source, n=n, d=d, box=box)
    radii = np.linspace(0.5, 1.0, d)
    rule, plain = (Modulus(f.expression, f.box, n, radii, own=own) for _ in range(2))
    assert len(rule.means) == 1
    plain.means = {}
    slots, random = len(rule.counts) + 1, np.random.default_rng(0)
    low, high = float(f.box.lower[0]), float(f.box.upper[0])
    sides = (high - low) * random.choice([1e-3, 0.1, 0.5, 1.0], size=(150, 1))
    start = low + (high - low - sides) * random.random((150, slots * d))
    with np.errstate(all="ignore"):
        bound, before = (m.lengths(start, start + sides) for m in (rule, plain))
    assert bool((bound <= before * (1 + 1e-9)).all())
    assert bool((bound < 0.9 * before).any())
    place = [0, *([1] * (n - 1) if slots == 2 else range(1, n))]
    u = random.choice([0.0, 1.0, 0.5, 0.25, 0.8], size=(150, 60, n, d))
    X = torch.tensor(start.reshape(150, 1, slots, d)[:, :, place] + sides[:, :, None, None] * u).reshape(-1, n, d)
    X.requires_grad_()
    weights = torch.tensor(radii) * torch.tensor([float(own)] + [1.0] * (n - 1))[:, None]
    for value in f(X)[:, 0].unbind(-1):
        (slope,) = torch.autograd.grad(value.sum(), X, retain_graph=True)
        seen = (slope.abs() * weights).sum((1, 2)).reshape(150, 60).amax(1).numpy()
        assert bool((seen <= bound * (1 + 1e-9)).all())
    assert float((seen / bound)[sides[:, 0] < 0.01].max()) > 0.8


def test_weights_of_unknown_sign_are_left_to_the_quotient_rule():
    """Σ y > 0 on all cells; the second token's y may be negative on the first, is on the second, not on the third."""
    rule, plain = (
        Modulus(parse("sum(y*(5 + sin(y)))/sum(y)", 1), target("sum(y)", n=2, d=1).box, 2, np.ones(1)) for _ in "ab"
    )
    plain.means = {}
    low, high = np.array([[2.0, -0.1], [2.0, -0.9], [2.0, 0.5]]), np.array([[3.0, 0.1], [3.0, -0.8], [3.0, 0.9]])
    with np.errstate(all="ignore"):
        bound, before = rule.lengths(low, high), plain.lengths(low, high)
    assert np.isfinite(before).all()
    assert np.abs(bound - before)[:2].max() <= 1e-9
    assert bound[2] < before[2]


@pytest.mark.parametrize("box", ["0:1", "5:6", "-1:2"])
def test_the_bound_is_near_what_is_attained(box: str):
    f = target(GAUSSIAN, n=3, d=1, box=box)
    low, high = float(f.box.lower[0]), float(f.box.upper[0])
    X = low + (high - low) * torch.rand(20_000, 3, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X[::2] = low + (high - low) * ((X[::2] - low) / (high - low)).round()
    X.requires_grad_()
    (slope,) = torch.autograd.grad(f(X)[:, 0].sum(), X)
    attained = float(slope[:, 1:].abs().sum((1, 2)).max())
    search = Modulus(f.expression, f.box, 3, np.ones(1))
    with np.errstate(all="ignore"):
        assert attained <= search.bound(1.1 * attained) <= 1.1 * attained
        assert search.bound(0.9 * attained) >= attained

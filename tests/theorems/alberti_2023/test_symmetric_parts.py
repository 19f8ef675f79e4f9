"""The steps of route symmetric, each against its definition: values, ellipses, interpolation, roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from sumformer.algebra import chebyshev
from sumformer.algebra.multisets import Multisets
from sumformer.targets import target
from sumformer.targets.torch_evaluation import TorchOperations
from sumformer.theorems.alberti_2023 import orbit_interpolant
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.orbit_interpolant import interpolate
from sumformer.theorems.alberti_2023.symmetric_degrees import Degrees, DegreeStudy
from sumformer.theorems.alberti_2023.symmetric_network import symmetric_network
from sumformer.theorems.alberti_2023.symmetric_support import SupportStudy
from sumformer.theorems.alberti_2023.token_ellipse import Variable, token_ellipse_maximum
from sumformer.theorems.alberti_2023.token_values import token_value

SOURCES = [
    "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))",
    "log(1 + sum(norm2(x - y)))",
    "mean_others(sin(y*mean(y)))*x + max(y)",
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_token_value_is_the_target(source: str):
    f = target(source, n=4, d=2)
    X = torch.rand(5, 4, 2, dtype=torch.float64)
    ops = TorchOperations(X.dtype, X.device)
    value = token_value(f.expression, ops, X[:, 0], X[:, 1:].movedim(1, 0), 3)
    torch.testing.assert_close(value, f(X)[:, 0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("coordinate", [0, 1])
def test_a_maximum_covers_the_ellipse(own: bool, coordinate: int):
    f = target("sum(exp(-dot(x, y))*(x[0] + 3*y[1]))/(4 + sum(norm2(x - y)))", n=3, d=2, box="0:1,-1:1")
    rho = 2.0
    bound = token_ellipse_maximum(f.expression, f.box, 3, Variable(own, coordinate), rho)
    assert bound is not None
    rng = np.random.default_rng(0)
    tokens = rng.uniform(-1, 1, (3, 2000, 2)).astype(complex)
    angle = rng.uniform(0, 2 * np.pi, 2000)
    z = (rho * np.exp(1j * angle) + np.exp(-1j * angle) / rho) / 2
    tokens[0 if own else 1, :, coordinate] = z
    tokens = tokens * np.array([0.5, 1.0]) + np.array([0.5, 0.0])
    x = tokens[0]
    weights = [np.exp(-(x * y).sum(-1)) for y in tokens]
    top = sum(w * (x[:, 0] + 3 * y[:, 1]) for w, y in zip(weights, tokens, strict=True))
    values = np.abs(top / (4 + sum(((x - y) ** 2).sum(-1) for y in tokens)))
    assert values.max() <= bound <= 100 * values.max()


def test_a_pole_inside_is_not_overlooked():
    f = target("1/(norm2(x - y) + 1)".join(["sum(", ")"]), n=3)  # poles at x = y ± i: ρ < 2 + √5
    for own in (True, False):
        assert token_ellipse_maximum(f.expression, f.box, 3, Variable(own, 0), 3.5) is not None
        assert token_ellipse_maximum(f.expression, f.box, 3, Variable(own, 0), 4.5) is None


@pytest.mark.parametrize(("n", "d", "own", "others"), [(3, 1, (5,), (3,)), (2, 2, (2, 3), (3, 1)), (4, 1, (2,), (4,))])
@pytest.mark.parametrize("enclosed", [False, True])
def test_the_interpolant_is_the_tensor_interpolant(n, d, own, others, enclosed, monkeypatch):
    if enclosed:
        monkeypatch.setattr(orbit_interpolant, "USEFUL", -1.0)  # as where rounding cannot be bounded on the whole box
    f = target("log(2 + sum(x*y) + x*mean_others(y**2))", n=n, d=d, box="-1/2:1")
    found = interpolate(f, Degrees(own, others, 0.0, (), n - 1))
    axes = [*own, *itertools.chain.from_iterable([others] * (n - 1))]
    grid = np.stack(np.meshgrid(*[chebyshev.nodes(N) for N in axes], indexing="ij"), axis=-1)
    X = torch.from_numpy(0.25 + 0.75 * grid.reshape(-1, n, d))
    for component in range(d):
        dense = chebyshev.coefficients(f(X)[:, 0, component].reshape([N + 1 for N in axes]).numpy())
        members = Multisets(len(found.basis.others), n - 1).members[n - 1]
        for a, alpha in enumerate(found.basis.own):
            for b, row in enumerate(members):
                place = (*alpha, *found.basis.others[row].ravel())
                assert abs(found.coefficients[component, a, b] - dense[place]) < 1e-13
    assert 0 < found.error < 1e-10


def test_remainders_bound_the_interpolation():
    f = target("log(1 + sum(norm2(x - y)))", n=3)
    study = DegreeStudy(f)
    for own, others in [((4,), (3,)), ((8,), (5,))]:
        degrees = study.at(own, others)
        found = interpolate(f, degrees)
        support = SupportStudy(found)._support(np.arange(found.coefficients[0].size), 0.0, None)
        net = symmetric_network(f, support, ARITHMETICS["float64"]).network
        X = torch.rand(500, 3, 1, dtype=torch.float64)
        X[:100] = X[:100].round()
        gap = float((net(X) - f(X)).abs().max().detach())
        assert gap <= degrees.remainder
        assert degrees.remainder <= 1e4 * gap


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
def test_roundings_are_covered(arithmetic: str):
    """The network against its own polynomial in exact products of cosines, far more precise."""
    f = target("log(1 + sum(norm2(x - y)))", n=4)
    study = SupportStudy(interpolate(f, Degrees((6,), (4,), 0.0, (), 3)))
    support = study.choose(1e-3)
    assert support is not None
    built = symmetric_network(f, support, ARITHMETICS[arithmetic])
    exact = symmetric_network(f, support, ARITHMETICS["float64"])
    X = torch.rand(2000, 4, 1).to(built.network.outside)
    gap = float((built.network(X).double() - exact.network(X.double())).abs().max().detach())
    bound = built.coefficients + built.rounding + exact.coefficients + exact.rounding
    assert gap <= bound
    assert bound <= (1e-12 if arithmetic == "float64" else 1e-3)

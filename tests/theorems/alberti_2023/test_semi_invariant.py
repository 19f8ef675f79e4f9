from __future__ import annotations

import pytest
import torch

from sumformer.errors import NotSymmetricError, ShapeError
from sumformer.targets import parse, target
from sumformer.theorems.alberti_2023.power_sums import expand
from sumformer.theorems.alberti_2023.semi_invariant import (
    equivariant,
    equivariant_function,
    semi_invariant,
    semi_invariant_function,
)

SOURCE = "x[0]*sum_others(y[1]**2) + mean(y[0])*x[1]"


@pytest.mark.parametrize("n", [2, 3, 4])
def test_there_and_back(n):
    (g,) = expand(parse(SOURCE, 2), n, 2)
    f = equivariant(g, n, 2)
    assert len(f) == n
    assert f[0] == g
    assert semi_invariant(f, 2) == g


def test_the_rows_are_those_of_the_target():
    n = 3
    f = equivariant(expand(parse(SOURCE, 2), n, 2)[0], n, 2)
    X = torch.rand(1, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    flat = X.flatten()
    rows = [sum(float(c) * (flat ** torch.tensor(e)).prod() for e, c in row.items()) for row in f]
    torch.testing.assert_close(torch.stack(rows), target(SOURCE, n=n, d=2)(X)[0, :, 0])


def test_what_is_not_semi_invariant_is_refused():
    with pytest.raises(NotSymmetricError) as refused:
        equivariant({(0, 1, 0): 1, (0, 0, 1): 2}, 3)
    assert set(refused.value.exponents) == {(0, 1, 0), (0, 0, 1)}


def test_what_is_not_equivariant_is_refused():
    f = list(equivariant({(0, 1, 0): 1, (0, 0, 1): 1}, 3))
    f[2] = {(1, 0, 0): 1, (0, 1, 0): 3}
    with pytest.raises(NotSymmetricError) as refused:
        semi_invariant(f)
    assert refused.value.tokens == (0, 2)
    assert refused.value.coefficients == (1, 3)
    with pytest.raises(NotSymmetricError):
        semi_invariant([{(1, 0): 1}, {(1, 0): 1}])


def test_functions_there_and_back():
    f = target("x - mean(y*dot(x, y))", d=2)
    g = semi_invariant_function(f)
    X = torch.rand(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(equivariant_function(g)(X), f(X))
    shuffled = X[:, [0, 3, 4, 1, 2]]
    torch.testing.assert_close(g(X[:, 0], X[:, 1:]), g(X[:, 0], shuffled[:, 1:]))
    with pytest.raises(ShapeError, match="batch, n, d"):
        equivariant_function(g)(X[0])

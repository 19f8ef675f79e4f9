from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.nn.polynomial_features import PolynomialFeatures, multi_indices
from sumformer.testing import relative_error

over_sizes = pytest.mark.parametrize(("d", "degree"), list(product(range(1, 5), range(1, 7))))
over_bases = pytest.mark.parametrize("basis", ["monomial", "chebyshev"])


def points(d, n=6):
    return torch.rand(2, n, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)


def by_definition(features, x):
    """Π_c x_c^{β_c}, or Π_c cos(β_c arccos t_c): feature by feature, no recurrence."""
    if features.basis == "chebyshev":
        t = 2 * (x - features.lower) / (features.upper - features.lower) - 1
        angle = t.arccos()
        rows = [math.prod((b * angle[..., c]).cos() for c, b in enumerate(beta)) for beta in features.indices]
    else:
        rows = [math.prod(x[..., c] ** b for c, b in enumerate(beta)) for beta in features.indices]
    return torch.stack(rows, -1)


@over_sizes
def test_multi_indices_are_all_of_them_once(d, degree):
    wanted = {beta for beta in product(range(degree + 1), repeat=d) if 0 < sum(beta) <= degree}
    indices = multi_indices(d, degree)
    assert set(indices) == wanted
    assert len(indices) == len(wanted) == math.comb(degree + d, d) - 1
    assert [sum(beta) for beta in indices] == sorted(sum(beta) for beta in indices)


@over_bases
@over_sizes
def test_values_and_gradients(d, degree, basis):
    features = PolynomialFeatures(d, degree, basis)
    x = points(d).requires_grad_(True)
    wanted, got = by_definition(features, x), features(x)
    assert got.shape == (2, 6, features.d_out)
    assert relative_error(got, wanted) <= 1e-12
    upstream = torch.randn(got.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (wanted_gradient,) = torch.autograd.grad(wanted, x, upstream)
    (got_gradient,) = torch.autograd.grad(got, x, upstream)
    assert relative_error(got_gradient, wanted_gradient) <= 1e-11


def test_gradcheck_at_zero():
    """x = 0 is where powers by logarithms break."""
    x = torch.zeros(1, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(PolynomialFeatures(3, 4), (x,))


def test_the_first_features_are_the_coordinates():
    x = points(3)
    assert torch.equal(PolynomialFeatures(3, 4)(x)[..., :3], x)


def test_chebyshev_products_are_bounded_on_the_interval():
    features = PolynomialFeatures(2, 6, "chebyshev", lower=-3.0, upper=5.0)
    x = -3.0 + 8.0 * points(2, 200)
    assert features(x).abs().max() <= 1 + 1e-12
    assert relative_error(features(x), by_definition(features, x)) <= 1e-12


def test_any_leading_shape():
    features = PolynomialFeatures(2, 3)
    x = torch.rand(2, 3, 5, 2)
    assert torch.equal(features(x)[1, 2], features(x[1, 2]))
    assert features(x[0, 0, 0]).shape == (9,)


def test_no_pow_and_few_steps():
    """The cost is one product per feature, in at most d vectorised steps beside the table of degree − 1 powers."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.calls.append(function.overloadpacket._qualified_op_name)
            return function(*args, **(kwargs or {}))

    with Count() as count:
        PolynomialFeatures(3, 6)(torch.rand(1, 2, 3))
    assert not any("pow" in name for name in count.calls)
    assert count.calls.count("aten::mul") == 5 + 2


def test_bad_arguments():
    for arguments in ((0, 2), (2, 0)):
        with pytest.raises(InputError, match="expected d ≥ 1 and degree ≥ 1"):
            PolynomialFeatures(*arguments)
    with pytest.raises(InputError, match="got 'legendre'"):
        PolynomialFeatures(2, 2, "legendre")
    with pytest.raises(InputError, match="expected lower < upper"):
        PolynomialFeatures(2, 2, "chebyshev", 1.0, 1.0)
    with pytest.raises(
        ShapeError, match=r"PolynomialFeatures: expected a tensor of shape \(…, 2\), got shape \(1, 3\)"
    ):
        PolynomialFeatures(2, 2)(torch.zeros(1, 3))

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from torch._subclasses import FakeTensorMode

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums

CASES = [(1, 5, "monomial"), (2, 12, "chebyshev"), (3, 7, "monomial"), (4, 5, "chebyshev")]


def check(d: int, degree: int, basis: str, n: int) -> None:
    """The contract: 1e-6 of Σ|φ|, float32 features included on these inputs; masked tokens may hold NaN."""
    x = torch.rand(2, n, d, generator=torch.Generator().manual_seed(0)) * 3 - 1
    keep = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) > 0.2
    features = PolynomialFeatures(d, degree, basis, -1.0, 2.0).double()(x.double())
    for k in (None, keep):
        phi = features if k is None else features * k.unsqueeze(-1)
        z = x if k is None else torch.where(k.unsqueeze(-1), x, torch.nan)
        got = power_sums(z, degree, basis, -1.0, 2.0, keep=k)
        assert got.dtype == torch.float64
        assert ((got - phi.sum(1)).abs() <= 1e-6 * phi.abs().sum(1)).all()


@pytest.mark.parametrize(("d", "degree", "basis"), CASES)
def test_they_are_sums_of_features(d, degree, basis):
    check(d, degree, basis, 2500)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_float64_and_several_spans(d, monkeypatch):
    monkeypatch.setattr("sumformer.kernels.power_sums_chunks.HELD", 500)
    x = torch.rand(1, 300, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    wanted = PolynomialFeatures(d, 4).double()(x).sum(1)
    assert ((power_sums(x, 4) - wanted).abs() <= 1e-13 * wanted).all()


@pytest.mark.parametrize("t", [-0.99999, -0.3, 0.123456789, 0.7, 1 - 2.0**-40])
def test_chebyshev_polynomials_of_float64_tokens_are_as_close_as_stated(t):
    """3 m² u of the token as it is mapped, and m² u for the one rounding of that."""
    x = torch.tensor([[[t]]], dtype=torch.float64)
    got = power_sums(x, 64, "chebyshev", -1.0, 1.0)[0]
    exact = [Fraction(1), Fraction(t)]
    for m in range(1, 65):
        assert abs(Fraction(got[m - 1].item()) - exact[m]) <= Fraction(4 * m**2, 2**53)
        exact.append(2 * Fraction(t) * exact[m] - exact[m - 1])


@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize("d", [1, 2])
def test_compiled_they_are_the_same(d, basis):
    x = torch.rand(3, 40, d)
    compiled = torch.compile(lambda z: 2 * power_sums(z, 5, basis), fullgraph=True)
    assert torch.equal(compiled(x), 2 * power_sums(x, 5, basis))


def test_outside_the_interval_features_go_on():
    x = torch.full((1, 1, 1), 3.0, dtype=torch.float64)
    assert torch.allclose(power_sums(x, 3, "chebyshev"), PolynomialFeatures(1, 3, "chebyshev").double()(x)[0])


def test_bad_input_is_named():
    for d in (0, 5):
        with pytest.raises(InputError, match=f"d = {d}"):
            power_sums(torch.zeros(1, 2, d), 2)
    with pytest.raises(InputError, match="'fourier'"):
        power_sums(torch.zeros(1, 2, 2), 2, "fourier")


@pytest.mark.parametrize("keep", [torch.ones(1, 40) > 0, torch.ones(3, 39) > 0, torch.ones(40) > 0, torch.ones(3, 40)])
def test_a_mask_of_another_shape_or_dtype_is_refused(keep):
    with pytest.raises((ShapeError, DtypeError)):
        power_sums(torch.zeros(3, 40, 2), 2, keep=keep)


@pytest.mark.parametrize(("lower", "upper"), [(-math.inf, 0.0), (-1e308, 1e308), (0.0, 1e-310)])
def test_an_interval_without_a_map_is_refused(lower, upper):
    with pytest.raises(InputError, match="finite and apart"):
        power_sums(torch.zeros(1, 2, 1), 2, "chebyshev", lower, upper)


def test_what_is_kept_for_later_is_real():
    """A call under a mode that makes no numbers leaves nothing behind."""
    x = torch.rand(1, 5, 3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        power_sums(x, 9)
    assert type(power_sums(x, 9)) is torch.Tensor

"""The kernel of the power sums in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("d", "degree", "basis"), [(1, 5, "monomial"), (2, 17, "chebyshev"), (4, 4, "chebyshev")])
def test_power_sums(d, degree, basis, monkeypatch):
    monkeypatch.setattr("sumformer.nn.power_sums.SPAN", 128)
    x = torch.rand(2, 300, d, generator=torch.Generator().manual_seed(0))
    keep = torch.rand(2, 300, generator=torch.Generator().manual_seed(1)) > 0.2
    phi = PolynomialFeatures(d, degree, basis).double()(x.double()) * keep.unsqueeze(-1)
    assert ((power_sums(x, degree, basis, keep=keep) - phi.sum(1)).abs() <= 1e-6 * phi.abs().sum(1)).all()

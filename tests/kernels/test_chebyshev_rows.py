"""T_k in one launch: what torch's operations give; without one, nothing."""

from __future__ import annotations

import pytest
import torch

from sumformer.kernels import chebyshev_rows as module
from sumformer.kernels.chebyshev_rows import chebyshev_rows
from sumformer.nn.network_operations import chebyshev_table

T = torch.linspace(-1, 1, 600, dtype=torch.float64).reshape(2, 300)


def exact(t: torch.Tensor, degree: int) -> torch.Tensor:
    """cos(k arccos t)."""
    k = torch.arange(degree + 1, dtype=torch.float64, device=t.device)
    return torch.cos(k[:, None] * torch.arccos(t.double())[:, None, :])


def test_without_a_device_torch_does_it():
    assert chebyshev_rows(T, 5) is None
    assert (chebyshev_table(T, 40).mT - exact(T, 40)).abs().max() <= 1e-12


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("degree", [0, 1, 2, 9])
def test_the_kernel(degree, monkeypatch):
    monkeypatch.setattr(module, "_interpreted", True)
    got = chebyshev_rows(T, degree)
    assert got is not None
    assert got.shape == (2, degree + 1, 300)
    assert (got - exact(T, degree)).abs().max() <= 1e-13
    with torch.enable_grad():
        assert chebyshev_rows(T.clone().requires_grad_(), degree) is None


@pytest.mark.gpu
@pytest.mark.parametrize("degree", [0, 1, 2, 63, 288])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_device(degree, dtype):
    u = torch.finfo(dtype).eps / 2
    t = (torch.rand(3, 10_001, 2, dtype=dtype, device="cuda") * 2 - 1)[..., 1]  # not contiguous
    got = chebyshev_rows(t, degree)
    assert got is not None
    k = torch.arange(degree + 1, device="cuda")[:, None]
    assert ((got.double() - exact(t, degree)).abs() <= 1.65 * u * k * (k - 1).clamp(min=0) + 1e-12 + 2 * u).all()
    assert torch.equal(chebyshev_table(t, degree), got.mT)
    with torch.no_grad():
        assert chebyshev_rows(t[:, :100], degree) is None
    assert chebyshev_rows(t.clone().requires_grad_(), degree) is None

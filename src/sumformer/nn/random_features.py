"""a(x) = k^{-1/2} exp(−‖x‖²/2) [exp(ω_1ᵀx), …, exp(ω_kᵀx)],   ω_i ~ N(0, I):   E a(q)·a(k) = exp(q·k).

The error of a draw falls like k^{-1/2}. Orthogonal ω keep every ω_i ~ N(0, I), hence the mean, and lower the variance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sumformer.nn.scaling import scaled


def iid_omega(k: int, d: int, seed: int) -> Tensor:
    """(k, d), rows independent, N(0, I)."""
    return _normal(k, d, torch.Generator().manual_seed(seed)).to(torch.get_default_dtype())


def orthogonal_omega(k: int, d: int, seed: int) -> Tensor:
    """(k, d), each row N(0, I), rows orthogonal within successive blocks of d."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.cat([_rotation(d, generator) for _ in range(math.ceil(k / d))])[:k]
    lengths = _normal(k, d, generator).norm(dim=1, keepdim=True)
    omega: Tensor = lengths * directions
    return omega.to(torch.get_default_dtype())


def positive_features(x: Tensor, omega: Tensor) -> Tensor:
    """a(x): (…, d) → (…, k), in float32 or wider."""
    k = omega.shape[0]
    return scaled(log_positive_features(x, omega).exp(), k**-0.5)


def log_positive_features(x: Tensor, omega: Tensor) -> Tensor:
    """log(k^{1/2} a(x)) = ω x − ‖x‖²/2: (…, d) → (…, k), in float32 or wider."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    log_features: Tensor = x @ omega.to(x.dtype).mT - x.square().sum(-1, keepdim=True) / 2
    return log_features


def _normal(k: int, d: int, generator: torch.Generator) -> Tensor:
    return torch.randn(k, d, generator=generator, dtype=torch.float64)


def _rotation(d: int, generator: torch.Generator) -> Tensor:
    """Uniform on the orthogonal group: QR with positive diagonal of R."""
    q, r = torch.linalg.qr(_normal(d, d, generator))
    rotation: Tensor = q * torch.where(r.diagonal() < 0, -1.0, 1.0)
    return rotation

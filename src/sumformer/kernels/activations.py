"""σ and σ′ of the mixing layer: relu, gelu (by erf), silu, tanh; in torch here, in Triton in `activations_triton`."""

from __future__ import annotations

from math import pi, sqrt

import torch
from torch import Tensor
from torch.nn import functional

NAMES = ("relu", "gelu", "silu", "tanh")


def value(name: str, z: Tensor) -> Tensor:
    """σ(z)."""
    if name == "relu":
        return torch.relu(z)
    if name == "gelu":
        return functional.gelu(z)
    return functional.silu(z) if name == "silu" else torch.tanh(z)


def slope(name: str, z: Tensor) -> Tensor:
    """σ′(z)."""
    if name == "relu":
        return (z > 0).to(z.dtype)
    if name == "gelu":
        return 0.5 * (1 + torch.erf(z / sqrt(2))) + z * torch.exp(-0.5 * z * z) / sqrt(2 * pi)
    if name == "silu":
        s = torch.sigmoid(z)
        return s * (1 + z * (1 - s))
    return 1 - torch.tanh(z) ** 2

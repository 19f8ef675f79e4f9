"""σ(z) and δ ⊙ σ'(z) written into given memory; σ' is read from σ(z) where that is enough, so z need not be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_aten = torch.ops.aten


@dataclass(frozen=True)
class Derivative:
    """`forward(z, out)`; `backward(delta, seen)` in place, where `seen` is σ(z) if `in_place` and z if not."""

    in_place: bool
    forward: Callable[[Tensor, Tensor], object]
    backward: Callable[[Tensor, Tensor], object]


class Activated:
    """h = σ(z) of one layer, and its backward pass."""

    def __init__(self, name: str, shape: tuple[int, ...], like: Tensor) -> None:
        self.sigma = DERIVATIVES[name]
        self.h = None if self.sigma.in_place else like.new_empty(shape)

    def forward(self, z: Tensor) -> Tensor:
        """In place where the derivative allows it."""
        h = z if self.h is None else self.h
        self.sigma.forward(z, h)
        self.seen = z
        return h

    def backward(self, delta: Tensor) -> Tensor:
        """∂h becomes ∂z."""
        self.sigma.backward(delta, self.seen)
        return delta


DERIVATIVES: dict[str, Derivative] = {
    "relu": Derivative(
        True,
        lambda z, out: torch.clamp_min(z, 0, out=out),
        lambda delta, seen: _aten.threshold_backward.grad_input(delta, seen, 0, grad_input=delta),
    ),
    "tanh": Derivative(
        True,
        lambda z, out: torch.tanh(z, out=out),
        lambda delta, seen: _aten.tanh_backward.grad_input(delta, seen, grad_input=delta),
    ),
    "silu": Derivative(
        False,
        lambda z, out: _aten.silu.out(z, out=out),
        lambda delta, seen: _aten.silu_backward.grad_input(delta, seen, grad_input=delta),
    ),
    "gelu": Derivative(
        False,
        lambda z, out: _aten.gelu.out(z, out=out),
        lambda delta, seen: _aten.gelu_backward.grad_input(delta, seen, grad_input=delta),
    ),
}

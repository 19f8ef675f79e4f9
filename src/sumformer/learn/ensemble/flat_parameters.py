"""All weights of M models in one tensor (M, P): a layer's weights are a view, an optimiser's step is one operation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Layer:
    """x ↦ x W + b for every member: W (M, in, out), b (M, 1, out) or none."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return torch.bmm(x, self.weight) if self.bias is None else torch.baddbmm(self.bias, x, self.weight)


@dataclass(frozen=True)
class LayerShape:
    """What one linear layer takes of the flat tensor."""

    d_in: int
    d_out: int
    bias: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.d_in * self.d_out, self.d_out) if self.bias else (self.d_in * self.d_out,)


def mlp_shapes(d_in: int, d_out: int, hidden: int, depth: int) -> list[LayerShape]:
    """The layers of `nn.MLP`."""
    widths = [d_in, *[hidden] * depth, d_out]
    return [LayerShape(a, b) for a, b in pairwise(widths)]


def layers(flat: Tensor, shapes: list[LayerShape]) -> list[Layer]:
    """The layers as views of `flat` (M, P). One split, so that its gradient is one concatenation."""
    M = flat.shape[0]
    pieces = iter(torch.split(flat, [size for shape in shapes for size in shape.sizes], dim=1))
    return [
        Layer(next(pieces).view(M, s.d_in, s.d_out), next(pieces).view(M, 1, s.d_out) if s.bias else None)
        for s in shapes
    ]


def write(row: Tensor, shapes: list[LayerShape], linears: list[nn.Linear]) -> None:
    """Fill a member's row (P,) with its linear layers; where a layer is narrower than its shape, zeros stay.

    Zero rows and columns keep zero gradients: a column of φ nobody reads, a row of ψ that reads zeros.
    """
    for layer, linear in zip(layers(row[None], shapes), linears, strict=True):
        layer.weight[0, : linear.in_features, : linear.out_features] = linear.weight.detach().T
        if layer.bias is not None and linear.bias is not None:
            layer.bias[0, 0, : linear.out_features] = linear.bias.detach()


def read(row: Tensor, shapes: list[LayerShape], linears: list[nn.Linear]) -> None:
    """The inverse of `write`."""
    with torch.no_grad():
        for layer, linear in zip(layers(row[None], shapes), linears, strict=True):
            linear.weight.copy_(layer.weight[0, : linear.in_features, : linear.out_features].T)
            if layer.bias is not None and linear.bias is not None:
                linear.bias.copy_(layer.bias[0, 0, : linear.out_features])


def count(shapes: list[LayerShape]) -> int:
    """P."""
    return sum(size for shape in shapes for size in shape.sizes)


def linears_of(module: nn.Module) -> list[nn.Linear]:
    """The linear layers of a module in the order they were made."""
    return [child for child in module.modules() if isinstance(child, nn.Linear)]

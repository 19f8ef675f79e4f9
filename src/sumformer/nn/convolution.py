"""q_i = Σ_j K(i − j) m_j on the nodes of a mesh, by all pairs of nodes or by frequencies (`frequencies.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.calling import transformed
from sumformer.nn.frequencies import Waves, convolve_by_frequencies

PIECE = 256  # nodes of a line whose differences are one matrix


def convolve(samples: Tensor, masses: Tensor, waves: Waves | None = None) -> Tensor:
    """q_i = Σ_j K(i − j) m_j: samples (2G_1 − 1, …, 2G_k − 1), masses (G_1, …, G_k, R); by frequencies with `waves`."""
    if torch.compiler.is_compiling() or transformed():
        return _sums(samples, masses, waves)
    out: Tensor = _Convolution.apply(samples, masses, waves)  # type: ignore[no-untyped-call]
    return out


class _Convolution(torch.autograd.Function):
    """Keeps samples and masses for the gradient, not the matrices or spectra made of them."""

    @staticmethod
    def forward(ctx: Any, samples: Tensor, masses: Tensor, waves: Waves | None) -> Tensor:
        ctx.save_for_backward(samples, masses)
        ctx.waves = waves
        return _sums(samples, masses, waves)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        samples, masses = ctx.saved_tensors
        to_samples = to_masses = None
        if ctx.needs_input_grad[0]:
            again = torch.is_grad_enabled()  # to be differentiated once more
            with torch.enable_grad():
                out = _sums(samples, masses if again else masses.detach(), ctx.waves)
                (to_samples,) = torch.autograd.grad(out, samples, gradient, create_graph=again)
        if ctx.needs_input_grad[1]:
            to_masses = convolve(samples.flip(list(range(samples.dim()))), gradient, ctx.waves)
        return to_samples, to_masses, None


def _sums(samples: Tensor, masses: Tensor, waves: Waves | None) -> Tensor:
    return pair_sums(samples, masses) if waves is None else convolve_by_frequencies(samples, masses, waves)


def pair_sums(samples: Tensor, masses: Tensor) -> Tensor:
    """One matrix for each difference along the first axis, which all pairs of planes at this distance share."""
    if samples.dim() == 1:
        return _sums_of_a_line(samples, masses)
    first, rest = masses.shape[0], masses.shape[1:-1]
    blocks = (_differences(plane, rest).reshape(prod(rest), prod(rest)) for plane in samples.unbind())
    right = masses.flip(list(range(1, masses.dim() - 1))).reshape(first, prod(rest), masses.shape[-1])
    return _sums_of_blocks(blocks, right).reshape(masses.shape)


def _sums_of_a_line(samples: Tensor, masses: Tensor) -> Tensor:
    """A line as planes of PIECE nodes, zeros appended."""
    size = masses.shape[0]
    piece = min(PIECE, size)
    planes = -(-size // piece)
    missing = planes * piece - size
    longer = torch.nn.functional.pad(samples, (missing, missing))
    blocks = (_differences(longer[i * piece : (i + 2) * piece - 1], (piece,)) for i in range(2 * planes - 1))
    right = torch.cat([masses, masses.new_zeros(missing, masses.shape[1])])
    right = torch.unflatten(right, 0, (planes, piece)).flip(1)
    return _sums_of_blocks(blocks, right).flatten(0, 1)[:size]


def _sums_of_blocks(blocks: Iterable[Tensor], right: Tensor) -> Tensor:
    """Σ_j B_{i−j} r_j over planes: 2G − 1 blocks (M, M), right (G, M, R)."""
    first, series = right.shape[0], right.shape[2]
    total = torch.zeros_like(right)
    for delta, block in enumerate(blocks, 1 - first):
        low, high = max(0, delta), min(first, first + delta)
        moved = block @ right[low - delta : high - delta].movedim(1, 0).flatten(1)
        total[low:high] += torch.unflatten(moved, 1, (high - low, series)).movedim(0, 1)
    return total


def _differences(samples: Tensor, shape: Sequence[int]) -> Tensor:
    """(2G_1 − 1, …) → (G_1, …, G_1, …), a view: at (i, G − 1 − j) the sample of i − j."""
    for axis, size in enumerate(shape):
        samples = samples.unfold(axis, size, 1)
    return samples

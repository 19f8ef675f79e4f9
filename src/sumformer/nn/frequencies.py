"""q_i = Σ_j K(i − j) m_j on nodes i, j of a box, by frequencies: q = F*((F K) ⊙ (F m))/P, P = Π L, with F the discrete
Fourier transform X_k = Σ_j e^{−2πijk/L} m_j of length L = 2G − 1 along each axis, which has room for all differences.

F is a product with its matrix, axis by axis, in real numbers: those of the first axis are real to begin with, so that
its frequencies 0 … G − 1 say all, the others being their conjugates. A long axis is two short ones: i = i_1 b + i_2
with 0 ≤ i_2 < b, and K(i − j) = K'(i_1 − j_1, i_2 − j_2) with K'(e_1, e_2) = K(e_1 b + e_2), |e_2| < b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from sumformer.nn.scaling import scaled

LONGEST = 256  # nodes of an axis, beyond which it is cut
COLUMNS = 2**24  # numbers of spectra that are held at a time

Waves = Callable[[int], Tensor]
"""L ↦ cos(2πt/L) and sin(2πt/L), t = 0 … L − 1, as (2, L)."""


def cut(nodes: int) -> tuple[int, ...]:
    """Sizes of at most LONGEST, as alike as can be, whose product is `nodes` or little more."""
    count = 1
    while LONGEST**count < nodes:
        count += 1
    sizes: list[int] = []
    for left in range(count, 0, -1):
        rest = -(-nodes // prod(sizes))
        root = round(rest ** (1 / left))
        sizes.append(next(b for b in range(max(1, root - 1), rest + 1) if b**left >= rest))
    return tuple(sizes)


def lengths(shape: Sequence[int]) -> set[int]:
    """All L for meshes of this shape."""
    return {2 * b - 1 for nodes in shape for b in cut(nodes)}


def convolve_by_frequencies(samples: Tensor, masses: Tensor, waves: Waves) -> Tensor:
    """samples (2G_1 − 1, …, 2G_k − 1), masses (G_1, …, G_k, R) → (G_1, …, G_k, R)."""
    shape = masses.shape[:-1]
    sizes = [cut(nodes) for nodes in shape]
    flat = [b for parts in sizes for b in parts]
    kernel = _spectrum(_windows(samples, sizes).unsqueeze(0), waves, flat, differences=True)
    columns = _padded(masses.movedim(-1, 0), sizes)
    some = max(1, COLUMNS // prod([2 * b for b in flat]))
    pieces = [columns] if torch.compiler.is_compiling() else torch.split(columns, some)
    out = torch.cat([_filtered(kernel, piece.reshape(piece.shape[0], *flat), waves, flat) for piece in pieces])
    out = out.reshape(out.shape[0], *[prod(parts) for parts in sizes])
    for axis, nodes in enumerate(shape, 1):
        out = out.narrow(axis, 0, nodes)
    return out.movedim(0, -1)


Complex = tuple[Tensor, Tensor]


def _filtered(kernel: Complex, masses: Tensor, waves: Waves, sizes: Sequence[int]) -> Tensor:
    """F*((F K) ⊙ (F m))/P for m (R, b_1, …, b_k)."""
    (a, b), (c, d) = kernel, _spectrum(masses, waves, sizes, differences=False)
    z = a * c - b * d, a * d + b * c
    for axis in range(len(sizes), 1, -1):
        cos, sin = _matrix(waves(2 * sizes[axis - 1] - 1), sizes[axis - 1], 2 * sizes[axis - 1] - 1)
        re, im = z
        z = _along(axis, cos, re) - _along(axis, sin, im), _along(axis, cos, im) + _along(axis, sin, re)
    cos, sin = _matrix(waves(2 * sizes[0] - 1), sizes[0], sizes[0])
    twice = torch.where(torch.arange(sizes[0], device=cos.device) > 0, 2.0, 1.0).to(cos.dtype)
    total = _along(1, cos * twice, z[0]) - _along(1, sin * twice, z[1])
    return scaled(total, 1 / prod([2 * b - 1 for b in sizes]))


def _spectrum(values: Tensor, waves: Waves, sizes: Sequence[int], *, differences: bool) -> Complex:
    """F of (R, b_1, …), or of values at the differences 1 − b … b − 1 of each axis: (R, b_1, L_2, …)."""
    re, im = values, None
    for axis, b in enumerate(sizes, 1):
        rows = b if im is None else 2 * b - 1
        cos, sin = _matrix(waves(2 * b - 1), rows, values.shape[axis], shift=b - 1 if differences else 0)
        if im is None:
            re, im = _along(axis, cos, re), -_along(axis, sin, re)
        else:
            re, im = _along(axis, cos, re) + _along(axis, sin, im), _along(axis, cos, im) - _along(axis, sin, re)
    if im is None:
        raise AssertionError("a mesh has axes")
    return re, im


def _matrix(wave: Tensor, rows: int, columns: int, shift: int = 0) -> Complex:
    """cos and sin of 2πk(j − shift)/L."""
    k = torch.arange(rows, device=wave.device).unsqueeze(1)
    j = torch.arange(columns, device=wave.device) - shift
    cos, sin = wave[:, (k * j).remainder(wave.shape[1])].unbind()
    return cos, sin


def _along(axis: int, matrix: Tensor, values: Tensor) -> Tensor:
    """Σ_j A_kj v_{… j …} for the axis of j."""
    if axis == values.dim() - 1:
        return values @ matrix.mT
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    found = matrix @ values.reshape(prod(before), values.shape[axis], prod(after))
    return found.reshape(*before, matrix.shape[0], *after)


def _padded(masses: Tensor, sizes: Sequence[Sequence[int]]) -> Tensor:
    """(R, G_1, …) with 0 on nodes that only the cut has."""
    missing = [(0, prod(parts) - nodes) for parts, nodes in zip(sizes, masses.shape[1:], strict=True)]
    return torch.nn.functional.pad(masses, [end for pair in reversed(missing) for end in pair])


def _windows(samples: Tensor, sizes: Sequence[Sequence[int]]) -> Tensor:
    """(2G_1 − 1, …) → (2b − 1 for every part of every axis)."""
    axis = 0
    for parts in sizes:
        more = prod(parts) - (samples.shape[axis] + 1) // 2
        after = samples.dim() - 1 - axis
        samples = torch.nn.functional.pad(samples, [0, 0] * after + [more, more])
        for i in range(1, len(parts)):
            b = prod(parts[i:])
            samples = samples.unfold(axis, 2 * b - 1, b).movedim(-1, axis + 1)
            axis += 1
        axis += 1
    return samples

"""Which rows of a (rows, d) matrix belong to which sequence, and how they are cut into tiles of one sequence each.

Equal lengths: sequence s holds the rows s·n … (s + 1)·n − 1. Packs: the rows cu_seqlens[s] … cu_seqlens[s + 1] − 1. No
number is read back from the device: for a pack the number of tiles is bounded by ⌈rows/tile⌉ + sequences, and the
spare ones are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Sums over tokens run in float32 or wider."""
    return torch.promote_types(dtype, torch.float32)


class Layout(NamedTuple):
    """`sequences` sequences of `length` rows each; for a pack `length` is 0 and `cu_seqlens` tells."""

    sequences: int
    length: int
    rows: int
    cu_seqlens: Tensor | None = None

    @staticmethod
    def of(x: Tensor, cu_seqlens: Tensor | None) -> Layout:
        """The layout of x (batch, n, d), or of a pack (1, total, d)."""
        rows = x.shape[0] * x.shape[1]
        if cu_seqlens is None:
            return Layout(x.shape[0], x.shape[1], rows)
        return Layout(cu_seqlens.shape[0] - 1, 0, rows, cu_seqlens)

    def counts(self, keep: Tensor | None, device: torch.device) -> Tensor:
        """The number of tokens that are summed, (sequences,), float32."""
        if self.cu_seqlens is not None:
            return self.cu_seqlens.diff().float()
        if keep is not None:
            return keep.reshape(self.sequences, self.length).sum(1, dtype=torch.float32)
        return torch.full((self.sequences,), float(self.length), device=device)

    def sums(self, values: Tensor) -> Tensor:
        """(rows, m) → (sequences, m) in float32 (float64 where the values are): the naive twin of the tiles' sums."""
        dtype = accumulation_dtype(values.dtype)
        if self.cu_seqlens is None:
            return values.reshape(self.sequences, self.length, values.shape[1]).sum(1, dtype=dtype)
        zeros = values.new_zeros(self.sequences, values.shape[1], dtype=torch.float64)
        return zeros.index_add(0, self.ids(values.device), values.double()).to(dtype)

    def to_rows(self, per_sequence: Tensor) -> Tensor:
        """(sequences, m) → (rows, m)."""
        if self.cu_seqlens is None:
            return per_sequence.repeat_interleave(self.length, 0) if self.sequences > 1 else per_sequence
        return per_sequence.index_select(0, self.ids(per_sequence.device))

    def ids(self, device: torch.device) -> Tensor:
        """The sequence of each row of a pack."""
        assert self.cu_seqlens is not None
        return torch.searchsorted(self.cu_seqlens[1:].long(), torch.arange(self.rows, device=device), right=True)

    def tile_count(self, tile: int) -> int:
        """How many tiles there are at most."""
        if self.cu_seqlens is None:
            return self.sequences * self.tiles_per_sequence(tile)
        return (self.rows + tile - 1) // tile + self.sequences

    def tiles_per_sequence(self, tile: int) -> int:
        return (self.length + tile - 1) // tile

    def tile_table(self, tile: int) -> tuple[Tensor, Tensor]:
        """For a pack: (tiles, 3) first row, sequence's end and sequence of each tile, and (N + 1,) the tiles' ends."""
        assert self.cu_seqlens is not None
        starts = self.cu_seqlens.long()
        per_sequence = (starts.diff() + tile - 1) // tile
        ends = torch.nn.functional.pad(per_sequence.cumsum(0), (1, 0))
        places = torch.arange(self.tile_count(tile), device=starts.device)
        # Spare tiles come after the last sequence: clamped to it, they begin at or behind its end.
        ids = torch.searchsorted(ends[1:], places, right=True).clamp(max=self.sequences - 1)
        first = starts[ids] + (places - ends[ids]) * tile
        end = starts[ids + 1]
        table = torch.stack([torch.minimum(first, end), end, ids], dim=1).int()
        return table, ends.int()

    def pieces(self, most: int) -> list[tuple[slice, slice, Layout]]:
        """(rows, sequences, layout) of pieces of at most `most` rows where lengths are equal; a pack stays whole."""
        if self.cu_seqlens is not None or self.rows <= most:
            return [(slice(0, self.rows), slice(0, self.sequences), self)]
        out = []
        if self.length > most:
            for s in range(self.sequences):
                for start in range(0, self.length, most):
                    m, begin = min(most, self.length - start), s * self.length + start
                    out.append((slice(begin, begin + m), slice(s, s + 1), Layout(1, m, m)))
            return out
        step = most // self.length
        for s in range(0, self.sequences, step):
            b = min(step, self.sequences - s)
            rows = slice(s * self.length, (s + b) * self.length)
            out.append((rows, slice(s, s + b), Layout(b, self.length, b * self.length)))
        return out

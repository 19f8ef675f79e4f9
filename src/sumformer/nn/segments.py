"""Packed sequences: N sequences end to end in one row (1, total, d), their ends in `cu_seqlens`.

Sequence s holds the tokens cu_seqlens[s] … cu_seqlens[s + 1] − 1; it may be empty. What a module computes on a pack is
what it computes on each sequence alone, without a loop over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.nn.buckets import Buckets
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask


@dataclass(frozen=True)
class Segments:
    """Where each token of a pack belongs. Made once, and given to every layer in the place of `cu_seqlens`."""

    cu_seqlens: Tensor
    """(N + 1,) int32, from 0 to total, never decreasing."""
    ids: Tensor
    """(total,) the sequence of each token."""
    ranks: Tensor
    """(total,) its place in that sequence, from 0."""
    lengths: Tensor
    """(N,)"""
    max_seqlen: int | None = None
    """At least the longest length; asked for by the modules that read a pack `in_batches`."""

    def sums(self, features: Tensor) -> Tensor:
        """(1, total, m) → (N, m) in float64: the sum over each sequence, 0 for an empty one.

        `index_add` is one running sum per sequence. A difference of prefix sums would cancel, and let NaN through from
        one sequence to the next; in float64 a long running sum loses nothing that float32 would show, and the order in
        which a GPU adds shows only in the last bits.
        """
        zeros = torch.zeros(self.lengths.shape[0], features.shape[-1], dtype=torch.float64, device=features.device)
        return zeros.index_add(0, self.ids, features[0].double())

    def maxima(self, x: Tensor) -> Tensor:
        """(1, total, d) → (N, d), the lowest number for an empty sequence."""
        lowest = x.new_full((self.lengths.shape[0], x.shape[-1]), torch.finfo(x.dtype).min)
        return lowest.scatter_reduce(0, self.ids.unsqueeze(-1).expand(-1, x.shape[-1]), x[0], "amax")

    def to_tokens(self, per_sequence: Tensor) -> Tensor:
        """(N, …) → (1, total, …): each token gets what belongs to its sequence."""
        return per_sequence.index_select(0, self.ids).unsqueeze(0)

    def in_batches(self, where: str, x: Tensor, read: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
        """x (1, total, d) → (1, total, m): `read(X, keep)` of the sequences as padded batches, in the `buckets`.

        Compiled code cannot look at the lengths: there all stand in one batch, N · max_seqlen.
        """
        bound = self._bound(where)
        if not torch.compiler.is_compiling():
            return self.buckets.join([b.unpad(read(b.pad(x), b.keep)) for b in self.buckets.batches])
        places, keep = self.ids * bound + self.ranks, torch.arange(bound, device=x.device) < self.lengths.unsqueeze(-1)
        zeros = x.new_zeros(self.lengths.shape[0] * bound, x.shape[-1])
        out = read(torch.unflatten(zeros.index_copy(0, places, x[0]), 0, (-1, bound)), keep)
        return out.flatten(0, 1).index_select(0, places).unsqueeze(0)

    @cached_property
    def buckets(self) -> Buckets:
        """The sequences sorted by length; made once, for all layers."""
        return Buckets.of(self.lengths, self.ids, self.ranks)

    def _bound(self, where: str) -> int:
        if self.max_seqlen is None:
            raise InputError(f"{where}: expected max_seqlen beside cu_seqlens, got None; compiled code pads to it")
        return self.max_seqlen


def segments_of(
    where: str, x: Tensor, mask: Tensor | None, cu_seqlens: Tensor | Segments | None, max_seqlen: int | None
) -> Segments | None:
    """The pack that `cu_seqlens` describes, checked against x (1, total, …); None without it.

    Compiled code cannot look at the numbers: there only shapes and dtypes are checked.
    """
    if cu_seqlens is None:
        if max_seqlen is not None:
            raise InputError(f"{where}: expected cu_seqlens beside max_seqlen, got None")
        return None
    if mask is not None:
        raise InputError(f"{where}: expected either a mask or cu_seqlens, got both")
    if x.shape[0] != 1:
        raise ShapeError(where, "a pack of shape (1, total, …) beside cu_seqlens", x.shape)
    if isinstance(cu_seqlens, Segments):
        if cu_seqlens.ids.shape[0] != x.shape[1]:
            raise ShapeError(where, f"the {cu_seqlens.ids.shape[0]} tokens of these Segments", x.shape)
        return cu_seqlens
    if max_seqlen is not None and not _is_positive(max_seqlen):
        raise InputError(f"{where}: expected max_seqlen as an integer ≥ 1, got {max_seqlen!r}")
    _check(where, x, cu_seqlens)
    lengths = cu_seqlens.diff().long()
    if not torch.compiler.is_compiling():
        _check_values(where, x, cu_seqlens, lengths, max_seqlen)
    places = torch.arange(x.shape[1], device=x.device)
    # The number of sequences that end at or before a token: empty ones are stepped over.
    ids = torch.searchsorted(cu_seqlens[1:].long(), places, right=True)
    return Segments(cu_seqlens, ids, places - cu_seqlens.long()[ids], lengths, max_seqlen)


Given = tuple[Tensor, Tensor | None, Tensor | Segments | None, int | None]
"""x, attention_mask, cu_seqlens and max_seqlen, as a network's `forward` takes them."""


def read_sequences(where: str, width: int, given: Given, read: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
    """`read(X, keep)` of what was given, padded or packed, after all checks."""
    x, attention_mask, cu_seqlens, max_seqlen = given
    check_tokens(where, x, width)
    keep = keep_from_attention_mask(where, x, attention_mask)
    segments = segments_of(where, x, attention_mask, cu_seqlens, max_seqlen)
    return read(x, keep) if segments is None else segments.in_batches(where, x, read)


def _is_positive(max_seqlen: object) -> bool:
    return isinstance(max_seqlen, int | torch.SymInt) and not isinstance(max_seqlen, bool) and max_seqlen >= 1


def _check(where: str, x: Tensor, cu_seqlens: Tensor) -> None:
    if not isinstance(cu_seqlens, Tensor):
        raise DtypeError(where, "cu_seqlens as a torch.Tensor", type(cu_seqlens).__name__)
    if cu_seqlens.dtype != torch.int32:
        raise DtypeError(where, "cu_seqlens of dtype int32", cu_seqlens.dtype)
    if cu_seqlens.dim() != 1 or cu_seqlens.shape[0] < 2:
        raise ShapeError(where, "cu_seqlens of shape (N + 1,) with N ≥ 1", cu_seqlens.shape)
    if cu_seqlens.device != x.device:
        raise InputError(f"{where}: expected cu_seqlens on {x.device}, got {cu_seqlens.device}")


def _check_values(where: str, x: Tensor, cu_seqlens: Tensor, lengths: Tensor, max_seqlen: int | None) -> None:
    # One look at the device for all four.
    first, last, shortest, longest = torch.stack(
        [cu_seqlens[0].long(), cu_seqlens[-1].long(), lengths.min(), lengths.max()]
    ).tolist()
    wrong = [f"a start at {first}"] if first else []
    wrong += [f"a decrease by {-shortest}"] if shortest < 0 else []
    wrong += [f"an end at {last}"] if last != x.shape[1] else []
    if wrong:
        raise InputError(
            f"{where}: expected cu_seqlens from 0 to total = {x.shape[1]}, never decreasing, got {', '.join(wrong)}"
        )
    if max_seqlen is not None and longest > max_seqlen:
        raise InputError(f"{where}: expected max_seqlen ≥ {longest}, the longest sequence, got {max_seqlen}")

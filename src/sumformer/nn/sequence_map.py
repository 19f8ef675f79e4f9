"""One definition, three readings of a sequence: padded, causal, packed. What surrounds the formula is shared here.

padded    padding is out of sight: exact zeros going in, erased coming out, zero gradient whatever it held
causal    f(X)_i sees x_1 … x_i alone: `causal_formula`(X)_i = `formula`(x_1, …, x_i)_i
packed    each sequence of a pack is a sequence of its own
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

from torch import Tensor, nn

from sumformer.errors import NotSupportedError
from sumformer.nn.inputs import zero_padding
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments
from sumformer.nn.token_order import compact, spread

STREAMING = (
    "SoftmaxAttention, SparseAttention, FavorAttention, PerformerAttention, AverageAttention, SeparableConvolution, "
    "SumMixer and Sumformer have a stream"
)
"""What to take instead of a module that has none."""


class SequenceMap(PretrainedModule, ABC):
    """Tokens in, tokens out. A subclass gives `formula`, and `causal_formula` where its definition has a causal order.

    `equivariant` speaks of the formula: in causal order no module is equivariant, unless it is token-wise.
    """

    no_causal_order: str = "its definition gives none"
    """Why there is no causal order, where there is none."""

    @abstractmethod
    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """The definition. `keep` (batch, n) marks the real tokens; None means all are; padding in x is already 0."""

    def causal_formula(self, x: Tensor) -> Tensor:
        """The definition on every prefix. No mask: padding stands behind the real tokens, where they do not look."""
        raise NotSupportedError(f"{type(self).__name__}: no causal order, {self.no_causal_order}")

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        """x (1, total, d), read sequence by sequence. Unless overridden it pads, to at most 2 · total tokens."""

        def read(padded: Tensor, keep: Tensor | None) -> Tensor:
            return self.causal_formula(padded) if is_causal else self.formula(padded, keep)

        return segments.in_batches(type(self).__name__, x, read)

    def stream(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow."""
        raise NotSupportedError(f"{type(self).__name__}.stream: no causal order, {self.no_causal_order}; {STREAMING}")

    def evaluate(self, x: Tensor, keep: Tensor | None, segments: Segments | None, is_causal: bool) -> Tensor:
        """The reading that was asked for; input checks come before."""
        if segments is not None:
            return self.packed_formula(x, segments, is_causal)
        if keep is None and not is_causal:
            return self.formula(x, None)
        x = zero_padding(x, keep)
        out = spread(self.causal_formula(compact(x, keep)), keep) if is_causal else self.formula(x, keep)
        return zero_padding(out, keep)


def refuse_causal_pooling(where: str, is_causal: bool) -> None:
    """One output per sequence has no order among outputs."""
    if is_causal:
        raise NotSupportedError(f"{where}: no causal order, it pools the whole sequence into one output")


def refuse_pooled_stream(where: str) -> NoReturn:
    """One output per sequence is no stream of outputs."""
    merge = "summarise gives a state that can be added to" if where == "DeepSets" else "take a TokenHead"
    raise NotSupportedError(f"{where}.stream: it pools the whole sequence into one output; {merge}")


def stream_through(where: str, part: nn.Module, x: Tensor, state: Any) -> tuple[Tensor, Any]:
    """A part's stream, of the user's own too."""
    stream = getattr(part, "stream", None)
    if stream is None:
        raise NotSupportedError(f"{where}: its part {type(part).__name__} has no `stream(x, state)`; {STREAMING}")
    out: tuple[Tensor, Any] = stream(x, state)
    return out


def pass_on(part: nn.Module, keep: Tensor | None, segments: Segments | None, is_causal: bool) -> dict[str, Any]:
    """The keywords with which a module calls its parts. A part of the user's own needs only those that are used."""
    keywords: dict[str, Any] = {"is_causal": True} if is_causal else {}
    if segments is None:
        return {"key_padding_mask": None if keep is None else ~keep} | keywords
    ours = isinstance(part, PretrainedModule)
    return {"cu_seqlens": segments if ours else segments.cu_seqlens, "max_seqlen": segments.max_seqlen} | keywords

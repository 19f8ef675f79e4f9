"""y_i = ψ(x_i, Σ): `net.apply(x, state)` evaluates queries against a summary of sources.

Σ is the sum of the features φ(x_k) over all tokens, over k ≤ i, or over the token's own sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from sumformer.errors import DtypeError, ShapeError
from sumformer.nn.inputs import check_piece, check_tokens
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments
from sumformer.nn.sequence_map import SequenceMap
from sumformer.nn.summary import Summary, prefix_summaries, segment_summaries, summarise


class SummarisingModule(PretrainedModule, ABC):
    """y_i = ψ(x_i, state), for any state made by `summarise`, `+` and `-`."""

    @abstractmethod
    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) without input checks."""

    def apply(self, x: Any, state: Summary | None = None) -> Any:
        """`apply(x, state)`: ψ(x_i, Σ). `apply(function)` stays torch's walk over sub-modules."""
        if state is None:
            if not callable(x) or isinstance(x, Tensor):
                raise DtypeError(f"{type(self).__name__}.apply", "queries x and a Summary", type(state).__name__)
            return super().apply(x)
        where = f"{type(self).__name__}.apply"
        check_tokens(where, x, self.token_width)
        if not isinstance(state, Summary):
            raise DtypeError(where, "queries x and a Summary", type(state).__name__)
        if self.summary_width not in (None, state.total.shape[-1]):
            raise ShapeError(where, f"a summary of latent dimension {self.summary_width}", state.total.shape)
        if state.total.shape[0] != x.shape[0] and 1 not in (state.total.shape[0], x.shape[0]):
            raise ShapeError(where, f"a summary of {x.shape[0]} sequences, or of one", state.total.shape)
        alone = x.shape[0] == 1
        return self.psi_of(x.expand(state.total.shape[0], *x.shape[1:]) if alone else x, state)

    @property
    def token_width(self) -> int | None:
        """Of every token; None where any will do."""
        width: int | None = getattr(self, "d", None)
        return width

    @property
    def summary_width(self) -> int | None:
        """d', where it is known."""
        width: int | None = getattr(self, "latent_dimension", None)
        return width


class FeatureSum(SummarisingModule, SequenceMap, ABC):
    """y_i = ψ(x_i, Σ_k φ(x_k)): what is summed over differs from reading to reading, φ and ψ do not."""

    width: int | None = None
    mean: bool

    @property
    def token_width(self) -> int | None:
        return self.width

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """φ, for each token on its own."""

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return self.psi_of(x, summarise(self.features(x), None, keep))

    def causal_formula(self, x: Tensor) -> Tensor:
        return self.psi_of(x, prefix_summaries(self.features(x)))

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        if is_causal:
            return super().packed_formula(x, segments, is_causal)
        state = segment_summaries(self.features(x), segments)
        return self.psi_of(x, Summary(segments.to_tokens(state.total), segments.to_tokens(state.count)))

    def stream(self, x: Tensor, state: Summary | None = None) -> tuple[Tensor, Summary]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow."""
        check_piece(f"{type(self).__name__}.stream", x, self.width, state, Summary)
        prefixes = prefix_summaries(self.features(x), state)
        return self.psi_of(x, prefixes), prefixes.last()

    def sum_of(self, state: Summary) -> Tensor:
        """Σ, or the mean where the module is one of means: (batch, 1, d'), or (batch, n, d') with one per token."""
        total = state.mean() if self.mean else state.total
        return total.unsqueeze(1) if total.dim() == 2 else total

"""A 2.13, Deep Sets: a permutation-invariant function is ρ(Σ_k φ(x_k))."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, with_dtypes_named, zero_padding
from sumformer.nn.mlp import MLP
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import refuse_causal_pooling, refuse_pooled_stream
from sumformer.nn.summary import Summary, segment_summaries, summarise


class DeepSets(PretrainedModule):
    """(batch, n, d) → (batch, d_out). An empty (all-padding) set gives zeros.

    A pack (1, total, d) with `cu_seqlens` gives one row per sequence, (N, d_out). There is no causal order.
    """

    def __init__(self, phi: nn.Module, rho: nn.Module, mean: bool = False) -> None:
        super().__init__()
        self.phi, self.rho, self.mean = phi, rho, mean

    @property
    def invariant(self) -> bool:
        return True

    @with_dtypes_named
    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        refuse_causal_pooling("DeepSets", is_causal)
        keep = keep_from_attention_mask("DeepSets", check_tokens("DeepSets", x), attention_mask)
        segments = segments_of("DeepSets", x, attention_mask, cu_seqlens, max_seqlen)
        features = self.phi(zero_padding(x, keep))
        state = summarise(features, None, keep) if segments is None else segment_summaries(features, segments)
        out = self.apply_summary(state, x.dtype)
        return out if keep is None and segments is None else zero_padding(out, state.count > 0)

    def stream(self, x: Tensor, state: Any = None) -> NoReturn:
        """There is none."""
        refuse_pooled_stream("DeepSets")

    def summarise(self, z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> Summary:
        """Σ over z (batch, m, d), each counted `weights` times."""
        keep = keep_from_attention_mask("DeepSets", check_tokens("DeepSets", z), attention_mask)
        return summarise(self.phi(zero_padding(z, keep)), weights, keep)

    def apply_summary(self, state: Summary, dtype: torch.dtype) -> Tensor:
        """ρ(Σ)."""
        out: Tensor = self.rho((state.mean() if self.mean else state.total).to(dtype))
        return out


def mlp_deep_sets(
    d: int, d_latent: int, d_out: int, hidden: int = 50, depth: int = 5, activation: str = "relu", mean: bool = False
) -> DeepSets:
    """φ and ρ are MLPs."""
    return DeepSets(MLP(d, d_latent, hidden, depth, activation), MLP(d_latent, d_out, hidden, depth, activation), mean)

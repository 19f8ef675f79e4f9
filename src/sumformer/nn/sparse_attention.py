"""S: head(X)_k = Σ_{j ∈ A_k} ρ(⟨x_k W_Q, x_· W_K⟩/√d over A_k)_j x_j W_V;   SparseAttention(X) = [head_1, …] W_O."""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.errors import InputError
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.normalisers import Normaliser, normaliser_or_softmax
from sumformer.nn.patterns.pattern import Composition, Pattern, steps_of_heads
from sumformer.nn.patterns.plan import plan
from sumformer.nn.scaling import scaled
from sumformer.nn.sparse_blocks import sparse_attend
from sumformer.nn.token_order import compact, spread


class SparseAttention(MultiHead):
    """Each token attends to its neighbours A_k in `pattern`. Cost O(connections) in time and memory, both ways.

    `composition` says what a layer makes of a pattern with several steps: "union" of them all in every head,
    "sequential" (the step `layer` mod p), "multihead" (heads divided among the steps). Places are ranks among the real
    tokens. In causal order A_k is that of the tokens up to k: A_k ∩ {j ≤ k}, and random neighbours are drawn among
    those. `normaliser` is ρ; d in √d is the size of a head; `query_bias` adds a bias to X W_Q. No other biases.
    """

    def __init__(
        self,
        d_model: int,
        pattern: Pattern,
        nhead: int = 1,
        d_head: int | None = None,
        normaliser: Normaliser | None = None,
        query_bias: bool = False,
        scale: bool = True,
        composition: Composition = "union",
        layer: int = 0,
    ) -> None:
        super().__init__(d_model, nhead, d_head, query_bias)
        if not isinstance(pattern, Pattern):
            raise InputError(f"SparseAttention: expected a Pattern, got {type(pattern).__name__}")
        self.pattern, self.composition, self.layer = pattern, composition, layer
        self.normaliser = normaliser_or_softmax("SparseAttention", normaliser)
        self.scale = scale
        heads = steps_of_heads(pattern, composition, nhead, layer)
        self._steps = [(step, len(list(group))) for step, group in groupby(heads)]

    @property
    def equivariant(self) -> bool:
        """Neighbours are known by their places."""
        return False

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        lengths = None if keep is None else keep.sum(-1)
        return spread(self._attend(compact(x, keep), lengths, is_causal=False), keep)

    def causal_formula(self, x: Tensor) -> Tensor:
        """A block of queries meets keys behind some of them, times 0, which is NaN where those are not finite.

        Such keys and values are taken out, and make the outputs NaN from their own place on.
        """
        finite = x.isfinite().all(-1, keepdim=True)
        out = self._attend(torch.where(finite, x, 0.0), None, is_causal=True)
        return torch.where((~finite).cumsum(1) > 0, torch.nan, out)

    def _attend(self, x: Tensor, lengths: Tensor | None, is_causal: bool) -> Tensor:
        """Each group of heads with the step that it uses."""
        n = x.shape[1]
        q, k, v = self.queries(x), self.keys(x), self.values(x)
        q = scaled(q, self.d_head**-0.5) if self.scale else q
        outs, first = [], 0
        for step, count in self._steps:
            heads = slice(first, first + count)
            layout = plan(step, n, x.device, is_causal, lengths)
            halo, spare = layout.halo, layout.size - n
            queries = functional.pad(q[:, heads], (0, 0, 0, spare))
            keys, values = (functional.pad(y[:, heads], (0, 0, halo, halo + spare)) for y in (k, v))
            outs.append(sparse_attend(queries, keys, values, layout, self.normaliser)[:, :, :n])
            first += count
        return self.join(torch.cat(outs, 1), x)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale={self.scale}, composition={self.composition}, layer={self.layer}"

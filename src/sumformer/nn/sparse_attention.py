"""S: head(X)_k = Σ_{j ∈ A_k} ρ(⟨x_k W_Q, x_· W_K⟩/√d over A_k)_j x_j W_V;   SparseAttention(X) = [head_1, …] W_O."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.errors import InputError
from sumformer.nn.inputs import check_piece
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.normalisers import Normaliser, normaliser_or_softmax
from sumformer.nn.patterns.pattern import Composition, Pattern, steps_of_heads
from sumformer.nn.patterns.plan import plan
from sumformer.nn.patterns.step import Step
from sumformer.nn.scaling import scaled
from sumformer.nn.sparse_blocks import sparse_attend
from sumformer.nn.sparse_stream import Held, SparseState, attend_to_held
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
        lengths, x = None if keep is None else keep.sum(-1), compact(x, keep)
        return spread(self.join(self._attend(*self._qkv(x), lengths, is_causal=False), x), keep)

    def causal_formula(self, x: Tensor) -> Tensor:
        """A block of queries meets keys behind some of them, times 0, which is NaN where those are not finite.

        Such keys and values are taken out, and make the outputs NaN from their own place on.
        """
        x, broken = _finite(x)
        return torch.where(broken, torch.nan, self.join(self._attend(*self._qkv(x), None, is_causal=True), x))

    def stream(self, x: Tensor, state: SparseState | None = None) -> tuple[Tensor, SparseState]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow.

        The state holds the keys and values that a later token may attend to: of a window the last w.
        """
        x, broken = _finite(check_piece("SparseAttention.stream", x, self.width, state, SparseState))
        q, k, v = self._qkv(x)
        first = 0 if state is None else state.count
        held = tuple(Held.of(k[:, heads], v[:, heads], first) for _, heads in self._groups())
        if state is None:
            out = self._attend(q, k, v, None, is_causal=True)
        else:
            held = tuple(before.then(new) for before, new in zip(state.held, held, strict=True))
            pairs = zip(held, self._groups(), strict=True)
            meet = [attend_to_held(q[:, heads], each, step, first, self.normaliser) for each, (step, heads) in pairs]
            out, broken = torch.cat(meet, 1), broken | state.broken
        count = first + x.shape[1]
        held = tuple(each.lasting(step, count) for each, (step, _) in zip(held, self._groups(), strict=True))
        return torch.where(broken, torch.nan, self.join(out, x)), SparseState(count, broken[:, -1:].clone(), held)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, is_causal: bool) -> Tensor:
        """Each group of heads with the step that it uses."""
        n, outs = q.shape[2], []
        for step, heads in self._groups():
            layout = plan(step, n, q.device, is_causal, lengths)
            halo, spare = layout.halo, layout.size - n
            queries = functional.pad(q[:, heads], (0, 0, 0, spare))
            keys, values = (functional.pad(y[:, heads], (0, 0, halo, halo + spare)) for y in (k, v))
            outs.append(sparse_attend(queries, keys, values, layout, self.normaliser)[:, :, :n])
        return torch.cat(outs, 1)

    def _qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.queries(x)
        return scaled(q, self.d_head**-0.5) if self.scale else q, self.keys(x), self.values(x)

    def _groups(self) -> Iterator[tuple[Step, slice]]:
        """Steps, and the heads that use them."""
        first = 0
        for step, count in self._steps:
            yield step, slice(first, first + count)
            first += count

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale={self.scale}, composition={self.composition}, layer={self.layer}"


def _finite(x: Tensor) -> tuple[Tensor, Tensor]:
    """x with 0 for tokens that are not finite, and (batch, n, 1), True from the first of those on."""
    finite = x.isfinite().all(-1, keepdim=True)
    return torch.where(finite, x, 0.0), (~finite).cumsum(1) > 0

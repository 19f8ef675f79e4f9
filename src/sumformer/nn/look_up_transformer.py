"""N = read-out ∘ Block ∘ … ∘ Block ∘ read-in: A 4.3–4.5 by the discontinuous proof, its tables as staircases.

  q = cell of the own token     c = φ(q)     m = mean of c over the tokens (the one attention)     y = table(A q + G m)

A staircase over t = wᵀz is  b + Σ_i w_i s_i(t):  step by step it takes every value of a table over t. Here
  step   s_i(t) = [t ≥ θ_i], one block:              FC(z) = W_2 H(W_1 z + b_1) + b_2
  relu   s_i(t) = min(1, R((t − θ_i)/ramp + ½)), two blocks: the first writes R(…) to a workspace coordinate for each
         step, the second adds 1 − R(1 − ·), so that off the ramps s_i is exactly 0 or 1.
With integers for q and c, t takes one value apart from all others (by 1 at least) for every own cell and multiset of
the others' cells, and m's rounding is rounded away: thresholds lie half way. Off the ramps (with steps: everywhere)
N(X)_i is an entry of the table, without any rounding.

As saved. `config.json`: `n` the number of tokens; `activation` "step" or "relu"; `arithmetic` "float64"; `layout` the
coordinates of the stream: `x` [0, …, d−1], `cell` q, `code` c, `mean` m, `out` [one for each output]; further ones
are workspace. `blocks` are three staircases (x → cell, cell → code, cell and mean → out), each of one block (step) or
two (relu); the attention stands in the first block of the third. Of `SparseFeedForward` and `SparseStepFeedForward`:
  step          unit i reads W_1[i], θ_i where W_1[i] z + b_1[i] = 0, and writes column i of W_2
  relu, first   unit i reads the same, θ_i where W_1[i] z + b_1[i] = ½, and writes 1 to a workspace coordinate
  relu, second  unit i reads −1 times that coordinate, b_1[i] = 1, and writes column i of W_2 (minus the step)
All other weights are 0; read-in and read-out copy (weights 1, no bias).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, ShapeError
from sumformer.nn.inputs import zero_padding
from sumformer.nn.sequence_reader import SequenceReader

ACTIVATIONS = ("step", "relu")


class LookUpTransformer(SequenceReader):
    """(batch, n, d) → (batch, n, outputs) for exactly n tokens; see above for the stream and the file."""

    def __init__(
        self,
        read_in: nn.Linear,
        blocks: Iterable[nn.Module],
        read_out: nn.Linear,
        n: int,
        layout: Mapping[str, Any],
        activation: str = "step",
        arithmetic: str = "float64",
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise InputError(f"LookUpTransformer: expected activation in {ACTIVATIONS}, got {activation!r}")
        self.read_in, self.blocks, self.read_out = read_in, nn.ModuleList(blocks), read_out
        if arithmetic != "float64":
            raise InputError(f"LookUpTransformer: expected arithmetic float64, got {arithmetic!r}")
        self.n, self.layout, self.activation, self.arithmetic = n, dict(layout), activation, arithmetic
        self.d, self.inside, self.outside = read_in.in_features, torch.float64, torch.float64

    latent_dimension = 1
    """d': Σ is one integer, as in the proof."""

    @property
    def exact_n(self) -> int:
        return self.n

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        self._check_count(x, keep)
        padding = None if keep is None else ~keep
        x = self.read_in(zero_padding(x, keep).to(self.inside))
        for block in self.blocks:
            x = block(x, key_padding_mask=padding)
        return zero_padding(self.read_out(x), keep)

    def _check_count(self, x: Tensor, keep: Tensor | None) -> None:
        """Compiled code cannot raise on the contents of a mask: there the refusal is torch's own assertion."""
        wanted = f"exactly n = {self.n} tokens, as its table has"
        if keep is not None and torch.compiler.is_compiling():
            torch._assert_async((keep.sum(1) == self.n).all(), f"LookUpTransformer: expected {wanted}")
        elif (x.shape[1] != self.n) if keep is None else bool((keep.sum(1) != self.n).any()):
            raise ShapeError("LookUpTransformer", wanted, x.shape)

    def extra_repr(self) -> str:
        shape = f"ℝ^{{{self.n}×{self.d}}} → ℝ^{{{self.n}×{self.read_out.out_features}}}"
        return f"{shape}, {len(self.blocks)} blocks of width {self.read_in.out_features}, {self.activation}"

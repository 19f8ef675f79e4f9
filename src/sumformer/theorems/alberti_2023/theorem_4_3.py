"""A 4.3: for every continuous equivariant f on a compact domain and ε > 0 there is a Transformer N with one attention
layer and sup_X ‖f(X) − N(X)‖_∞ < ε.

Rows become [1 | u | φ(u) | 0] by token-wise blocks. W_Q = W_K = 0 gives equal logits, hence the attention matrix 11ᵀ/n;
W_V takes φ, W_O puts the mean where there was 0: [1 | u | φ | mean φ] is what FC sees. ψ follows, token by token.
"""

from __future__ import annotations

import torch

from sumformer.gadgets.saw import Prefer
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.mean_head import MeanHead, select
from sumformer.theorems.alberti_2023.compile.statement import statement
from sumformer.theorems.built import Built


def mean_head(width: int, values: list[int], means: list[int]) -> SoftmaxAttention:
    """softmax(0) = 11ᵀ/n, exactly equal entries: the head returns the mean of the values."""
    layer = SoftmaxAttention(width, d_head=max(1, len(values))).to(torch.float64)
    return select(layer, values, means)


def transformer(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    route: str | None = None,
    prefer: Prefer = "parameters",
    activation: str | None = None,
    p: float | None = None,
) -> Built:
    """The theorem as a program; weights free of n wherever the target is. `activation`, `p`: of route grid."""
    head = MeanHead("transformer", mean_head, f.tokens.maximum + 10)
    return statement(f, epsilon, arithmetic, route, prefer, head, activation, p)

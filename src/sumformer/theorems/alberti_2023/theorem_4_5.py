"""A 4.5: as A 4.3 with Performer attention, a(X W_Q)(a(X W_K)ᵀ X W_V), a the positive random features.

W_Q = W_K = 0 gives a(0)·a(0) = 1 for every draw of ω: the kernel matrix is λ·11ᵀ with λ = 1. Without row normalisation
the head returns the sum, and W_V carries 1/n; with it (`normalised`) λ cancels, the head returns the mean, for every n.
"""

from __future__ import annotations

import torch

from sumformer.errors import RefusedError
from sumformer.gadgets.saw import Prefer
from sumformer.nn.layer import check_positive
from sumformer.nn.performer_attention import FavorAttention, PerformerAttention
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.mean_head import Head, MeanHead, select
from sumformer.theorems.alberti_2023.compile.statement import statement
from sumformer.theorems.built import Built


def sum_head(n: int, k: int) -> Head:
    """a(0)(a(0)ᵀ V) = Σ V: the values carry 1/n."""

    def head(width: int, values: list[int], means: list[int]) -> PerformerAttention:
        layer = PerformerAttention(width, k=k, d_head=max(1, len(values))).to(torch.float64)
        return select(layer, values, means, 1 / n)

    return head


def mean_head(k: int) -> Head:
    """The same with row normalisation: the mean, whatever n is."""

    def head(width: int, values: list[int], means: list[int]) -> FavorAttention:
        layer = FavorAttention(width, k=k, d_head=max(1, len(values))).to(torch.float64)
        return select(layer, values, means)

    return head


def performer(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    route: str | None = None,
    prefer: Prefer = "parameters",
    k: int = 1,
    normalised: bool | None = None,
    activation: str | None = None,
    p: float | None = None,
) -> Built:
    """The theorem as a program: the paper's unnormalised head for one n, the normalised one where n is free."""
    check_positive("performer", k=k)
    free = not f.tokens.exact
    normalised = free if normalised is None else normalised
    if free and not normalised:
        raise RefusedError(
            "the unnormalised head returns the sum, so a mean needs n",
            [f"say how many tokens there are (--tokens 5); now it is {f.tokens.formula()}; or take normalised=True"],
        )
    n = f.tokens.maximum
    make, tokens = (mean_head(k), None) if normalised else (sum_head(n, k), n)
    head = MeanHead("performer", make, n + 4 * k + 20, tokens)
    return statement(f, epsilon, arithmetic, route, prefer, head, activation, p)

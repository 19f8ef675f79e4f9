"""A 4.4: as A 4.3 with Linformer attention, ρ((X W_Q)(E X W_K)ᵀ) F X W_V, E and F ∈ ℝ^{k×n}.

E = F = (1/n)·1: every row of F X W_V is the mean of the values, equal logits average k equal rows, any k ≥ 1 will do.
(F = (1/k)·1, as printed, with the values of A 4.3 scaled by n gives (n/k)·Σ instead of Σ.) E and F have n columns: the
number of tokens must be known.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from sumformer.errors import RefusedError
from sumformer.gadgets.saw import Prefer
from sumformer.nn.layer import check_positive
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.mean_head import Head, MeanHead, select
from sumformer.theorems.alberti_2023.compile.statement import statement
from sumformer.theorems.built import Built


def mean_head(n: int, k: int) -> Head:
    """The head for exactly n tokens."""

    def head(width: int, values: list[int], means: list[int]) -> LinformerAttention:
        layer = LinformerAttention(width, n_max=n, k=k, d_head=max(1, len(values))).to(torch.float64)
        with torch.no_grad():
            layer.E.fill_(1 / n)
            layer.F.fill_(1 / n)
        return select(layer, values, means)

    return head


def linformer(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    route: str | None = None,
    prefer: Prefer = "parameters",
    k: int = 1,
    activation: str | None = None,
    p: float | None = None,
) -> Built:
    """The theorem as a program, for one number of tokens."""
    check_positive("linformer", k=k)
    if not f.tokens.exact:
        raise RefusedError(
            "a Linformer's E and F are k×n: the number of tokens must be known",
            [f"say how many there are (--tokens 5); now it is {f.tokens.formula()}"],
        )
    n = f.tokens.maximum
    head = MeanHead("linformer", mean_head(n, k), n + k + 10, n)
    return statement(f, epsilon, arithmetic, route, prefer, head, activation, p, replace(head, roundings=n + k + 12))

"""The network of Y Theorem 2 or 3, or S Theorem 1, in exact arithmetic: hardmax, three pieces, any magnitude, no ramps.

d_p(f, g) ≤ cells + tokens in equal cells + the rounding of the written values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sumformer.errors import InputError, RefusedError, ShapeError
from sumformer.nn.patterns.pattern import Pattern
from sumformer.targets.target import Target
from sumformer.theorems.request import asked_epsilon, asked_options, asked_target
from sumformer.theorems.yun_2020_deep.certified import layers_of, rounding_term, zero_bound
from sumformer.theorems.yun_2020_deep.grid import Exact, as_exact
from sumformer.theorems.yun_2020_deep.network import Layers
from sumformer.theorems.yun_2020_deep.search import Choice, search, terms
from sumformer.theorems.yun_2020_deep.theorem_2 import deep_plan, exact_tokens
from sumformer.theorems.yun_2020_sparse.theorem_1 import sparse_plan


@dataclass(frozen=True)
class ExactTransformer:
    """g with d_p(f, g) ≤ `bound`; `layers` takes tokens in units of δ."""

    target: Target
    layers: Layers
    choice: Choice
    bound: float

    def __call__(self, X: Any) -> Exact:
        """g(X), as fractions (batch, n, width), for tokens (batch, n, d): any numbers, taken exactly."""
        given, box, n = np.asarray(X), self.target.input_box, self.choice.grid.n
        if given.ndim != 3 or given.shape[1:] != (n, box.d):
            raise ShapeError("exact_transformer", f"tokens (batch, {n}, {box.d})", given.shape)
        try:
            exact = np.vectorize(Fraction, otypes=[object])(as_exact(given)) if given.size else as_exact(given)
        except (TypeError, ValueError, OverflowError):
            raise InputError("exact_transformer: expected finite numbers") from None
        low, high = as_exact(box.lower), as_exact(box.upper)
        return self.layers(self.choice.grid.q * (exact - low) / (high - low), fused=True)


def exact_transformer(
    target: Any, epsilon: float, *, p: float = 1.0, pattern: Pattern | str | None = None, **domain: Any
) -> ExactTransformer:
    """As `construct` for a deep Transformer, or with a `pattern` a sparse one; too many layers alone are refused."""
    f, epsilon = asked_target(target, domain), asked_epsilon(epsilon)
    if not isinstance(f, Target):
        raise RefusedError("a function without a formula has no exact Transformer", ["write it as a formula"])
    asked = asked_options(None, p=p, pattern=pattern)
    n, d = exact_tokens(f, "Transformer in exact arithmetic", None, None), f.input_box.d
    plan = deep_plan(f, n) if pattern is None else sparse_plan(asked["pattern"], n, d)
    choice = search(f, n, epsilon, asked["p"], plan.grid, plan.too_many, zero_bound(f, n, asked["p"]))
    layers = layers_of(plan, f, choice)
    bound = sum(terms(f, choice, asked["p"])) + rounding_term(f, n, asked["p"], 2.0**-layers.scale)
    return ExactTransformer(f, layers, choice, bound)

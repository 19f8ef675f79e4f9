"""Named targets, each with what it means and the best that can be said of it: exact, sums, or only Lipschitz.

*exact*: a polynomial, so power sums represent it exactly; *sums*: analytic in x and Σ_j k(x, x_j), so finitely many
features come as close as one likes, or continuous in them and computed as written (a root that reaches 0);
*lipschitz*: only continuity with a known modulus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sumformer.errors import InputError
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.target import Target, target

Kind: TypeAlias = Literal["exact", "sums", "lipschitz"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A named target: its source (a function of d where d matters), the defaults for d and n, its meaning, its kind."""

    name: str
    source: str | Callable[[int], str]
    d: int
    tokens: str
    meaning: str
    kind: Kind

    def source_for(self, d: int) -> str:
        return self.source if isinstance(self.source, str) else self.source(d)

    def build(
        self, *, d: int | None = None, n: str | int | Tokens | None = None, box: str | Box | None = None
    ) -> Target:
        """The target itself, by default with the entry's d, n and the unit box."""
        d = self.d if d is None else d
        return target(self.source_for(d), n=self.tokens if n is None else n, d=d, box=box)


def _attention(weight: str, value: str = "y") -> str:
    return f"sum({weight}*{value})/sum({weight})"


def _smoothed(d: int) -> str:
    """Coordinates 0 … d−2 are a place, coordinate d−1 a value to be smoothed over places near."""
    if d < 2:
        raise InputError("nadaraya_watson: expected d ≥ 2 (places and one value), got 1")
    return _attention(f"exp(-4*norm2(x[0:{d - 1}] - y[0:{d - 1}]))", f"y[{d - 1}]")


_ENTRIES = (
    Entry(
        "figure_2",
        "x + 7*x**2 + 3*x*sum_others(y)**3",
        2,
        "3",
        "the function of figure 2 of the Sumformer paper, coordinate by coordinate",
        "exact",
    ),
    Entry("centring", "x - mean(y)", 2, "any", "mean-centring: what layer norms and batch norms begin with", "exact"),
    Entry("variance", "mean((y - mean(y))**2)", 2, "any", "the variance of every coordinate over the tokens", "exact"),
    Entry(
        "covariance",
        "mean((y - mean(y))*(y[0] - mean(y[0])))",
        2,
        "any",
        "the covariance of every coordinate with the first one",
        "exact",
    ),
    Entry(
        "linear_attention",
        "mean(dot(x, y)*y)",
        2,
        "any",
        "attention without softmax: the second-moment matrix applied to the own token",
        "exact",
    ),
    Entry(
        "figure_1_polynomial_a",
        "x**2 - x*mean(y) + mean(y**2)",
        4,
        "5",
        "polynomial target for figure 1 (the paper does not print its own): degree 2, coordinate by coordinate",
        "exact",
    ),
    Entry(
        "figure_1_polynomial_b",
        "x*dot(x, sum_others(y)) - 0.5*sum_others(y)**2",
        4,
        "5",
        "polynomial target for figure 1 (the paper does not print its own): degree 3, coordinates mixed",
        "exact",
    ),
    Entry(
        "figure_1_smooth_a",
        "sin(3*x)*exp(-mean_others(norm2(x - y)))",
        4,
        "5",
        "non-polynomial target for figure 1 (the paper does not print its own): a wave, damped far from the others",
        "sums",
    ),
    Entry(
        "figure_1_smooth_b",
        "tanh(x*sum_others(y)) + sqrt(0.1 + mean((y - mean(y))**2))",
        4,
        "5",
        "non-polynomial target for figure 1 (the paper does not print its own): a saturated product and a spread",
        "sums",
    ),
    Entry(
        "z_score",
        "(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)",
        2,
        "any",
        "standardised coordinates, with the offset that keeps the denominator away from 0",
        "sums",
    ),
    Entry(
        "soft_rank", "mean(sigmoid((x - y)/0.1))", 1, "any", "the rank of a token, smoothed: 0 lowest, 1 top", "sums"
    ),
    Entry(
        "gaussian_attention",
        _attention("exp(-norm2(x - y))"),
        2,
        "any",
        "attention with a wide Gaussian kernel: a local mean of the tokens",
        "sums",
    ),
    Entry(
        "sharp_gaussian_attention",
        _attention("exp(-4*norm2(x - y))"),
        2,
        "any",
        "attention with a narrow Gaussian kernel: one step of mean shift",
        "sums",
    ),
    Entry(
        "dot_product_attention",
        _attention("exp(2*dot(x, y))"),
        2,
        "any",
        "softmax attention with W_Q W_Kᵀ = 2·1 and W_V = 1",
        "sums",
    ),
    Entry(
        "nadaraya_watson",
        _smoothed,
        3,
        "any",
        "kernel regression: the last coordinate, smoothed over tokens that are near in the others",
        "sums",
    ),
    Entry(
        "gravity",
        "mean((y - x)/sqrt(norm2(x - y) + 0.25)**3)",
        2,
        "any",
        "softened gravity: the mean pull of the tokens on each of them",
        "sums",
    ),
    Entry(
        "density",
        "mean(exp(-norm2(x - y)/(2*0.35**2)))",
        2,
        "any",
        "kernel density estimate at the token, bandwidth 0.35, up to its constant",
        "sums",
    ),
    Entry("cauchy_kernel", "mean(1/(1 + 4*norm2(x - y)))", 2, "any", "how crowded it is here, heavy-tailed", "sums"),
    Entry("softmax", "exp(x)/sum(exp(y))", 1, "..1000", "softmax over the tokens, coordinate by coordinate", "sums"),
    Entry(
        "log_spread", "log(1 + sum(norm2(x - y)))", 2, "..100", "the logarithm of a sum of squared distances", "sums"
    ),
    Entry("sine_of_mean", "sin(3*mean(y) + x)", 2, "any", "a wave whose phase is the mean of the tokens", "sums"),
    Entry("distance_to_mean", "norm(x - mean(y))", 2, "any", "how far from the middle: not smooth there", "sums"),
    Entry("max_pooling", "max(y)", 2, "any", "the largest value of every coordinate", "lipschitz"),
    Entry("range", "max(y) - min(y)", 2, "any", "the extent of the tokens in every coordinate", "lipschitz"),
    Entry("furthest", "max(norm(x - y))", 2, "any", "the distance to the furthest token (Hausdorff-like)", "lipschitz"),
)
GALLERY: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def from_gallery(
    name: str, *, d: int | None = None, n: str | int | Tokens | None = None, box: str | Box | None = None
) -> Target:
    """The target `name` of the gallery."""
    if name not in GALLERY:
        raise InputError(f"gallery: expected one of {', '.join(GALLERY)}; got {name!r}")
    return GALLERY[name].build(d=d, n=n, box=box)


def refuse_name(expression: object, d: object) -> None:
    """The name of a target in place of a formula is answered by its formula, for d or else its own."""
    entry = GALLERY.get(expression.strip()) if isinstance(expression, str) else None
    if entry is not None:
        try:
            formula = entry.source_for(d if isinstance(d, int) and 0 < d < 100 else entry.d)
        except InputError:
            formula = entry.source_for(entry.d)
        raise InputError(f"{entry.name} is the name of a target in the gallery; give its formula: '{formula}'")

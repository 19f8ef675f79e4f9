"""Which degrees, which features: the choice that turns a decomposition and a tolerance into a network's shape.

A kernel is cut to the least degree whose proved error is ≤ tolerance · scale; of the products of its features those
with the smallest coefficients are left out while their sum (the ℓ1 mass, an upper bound) stays ≤ half of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product as cartesian
from math import prod

import numpy as np

from sumformer.algebra.rounding import FloatArray, sum_up
from sumformer.errors import RefusedError
from sumformer.nn.expression_parts import MultiIndex, shift
from sumformer.targets import Const, Node
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.components import coordinates
from sumformer.theorems.alberti_2023.decomposition import Decomposition, Term
from sumformer.theorems.alberti_2023.interpolation import Interpolant, KernelStudy, Truncation
from sumformer.theorems.alberti_2023.roundings import Roundings

MAX_FEATURES = 20_000
FEWER = "a larger ε, a smaller box or a smoother kernel needs fewer"
REMAINDER_SHARE = {1: 0.03, 2: 0.1, 3: 0.1}  # of a kernel's allowance, at most; degrees are dear in many variables


@dataclass(frozen=True)
class KernelPlan:
    """K̃_g: the cut interpolant, its proved error (remainder + dropped), and the range of K_g."""

    study: KernelStudy
    coordinates: tuple[int, ...]
    interpolant: Interpolant
    truncation: Truncation

    @property
    def degree(self) -> int:
        return int(self.truncation.coefficients.shape[0]) - 1

    @property
    def range(self) -> tuple[float, float]:
        return self.study.range

    @property
    def remainder(self) -> float:
        return self.interpolant.remainder

    @property
    def dropped(self) -> float:
        return self.truncation.dropped

    relative_remainder = relative_dropped = float("inf")  # a share of K is not known

    @property
    def mass(self) -> float:
        """Σ|A|, which bounds |K̃| and carries every rounding."""
        return float(np.abs(self.truncation.coefficients).sum())


@dataclass(frozen=True)
class ProductPlan:
    """Π_g K̃_g over the kept features, and a bound of what leaving the others out changes."""

    kernels: tuple[Node, ...]
    support: tuple[MultiIndex, ...]
    left_out: float


@dataclass(frozen=True)
class Plan:
    """Everything the network is made of, before it is a module."""

    decomposition: Decomposition
    kernels: Mapping[Node, KernelPlan]
    products: Mapping[tuple[Node, ...], ProductPlan]
    channels: Mapping[Node, tuple[MultiIndex, ...]]

    @property
    def latent_dimension(self) -> int:
        return sum(len(support) for support in self.channels.values())

    def roundings(self, arithmetic: Arithmetic, u: float, n_max: int) -> Roundings:
        """On the way from tokens to V_t, with unit roundoff u."""
        return Roundings(self, arithmetic, u, n_max)


def terms_of(decomposition: Decomposition) -> list[Term]:
    """All terms of all reductions."""
    return [t for s in decomposition.sums for component in s.components for t in component]


def make_plan(
    decomposition: Decomposition,
    studies: Mapping[Node, KernelStudy],
    scales: Mapping[Node, float],
    tolerance: float,
    dtype: str,
    product_scales: Mapping[tuple[Node, ...], float] | None = None,
) -> Plan:
    """The smallest shapes at this tolerance, relative to the scale of each kernel, and of a product (else theirs)."""
    of_products = product_scales or {}
    kernels = {}
    for node, study in studies.items():
        allowance = tolerance * scales[node]
        interpolant = study.interpolate(REMAINDER_SHARE[study.box.d] * allowance)
        truncation = _least_truncation(interpolant, allowance, dtype)
        kernels[node] = KernelPlan(study, tuple(sorted(coordinates(node))), interpolant, truncation)
    d = decomposition.expander.box.d
    products: dict[tuple[Node, ...], ProductPlan] = {}
    channels: dict[Node, set[MultiIndex]] = {}
    for term in terms_of(decomposition):
        if term.kernels not in products:
            scale = of_products.get(term.kernels, prod(scales[k] for k in term.kernels))
            allowance = tolerance * scale / 2
            products[term.kernels] = _product(term.kernels, kernels, d, allowance)
        support = channels.setdefault(term.channel, set())
        for beta in products[term.kernels].support:
            support.update(shift(beta, term.polynomial))
    for channel, support in channels.items():
        if isinstance(channel, Const) and channel.value == 1:
            support.discard((0,) * d)
    plan = Plan(decomposition, kernels, products, {c: tuple(sorted(s)) for c, s in channels.items()})
    if plan.latent_dimension > MAX_FEATURES:
        raise RefusedError(
            "route sums: the latent dimension exceeds the budget",
            [f"d' = {plan.latent_dimension} features would be needed, at most {MAX_FEATURES} are built", FEWER],
        )
    return plan


def _least_truncation(interpolant: Interpolant, allowance: float, dtype: str) -> Truncation:
    """The lowest degree that is shown to be enough, as long as what is dropped decreases with the degree."""

    def enough(degree: int) -> bool:
        return interpolant.truncate(degree, dtype).dropped + interpolant.remainder <= allowance

    low, high = 0, interpolant.degree
    if not enough(high):  # what is not known of the coefficients is too much already
        return interpolant.truncate(high, dtype)
    while low < high:  # by guesses, which are cheap and too small
        middle = (low + high) // 2
        low, high = (low, middle) if interpolant.estimate(middle) <= allowance else (middle + 1, high)
    step, high = 1, low
    while not enough(high):  # by proofs: from the guess upward in steps that double, then between the last two
        low, high, step = high + 1, min(high + step, interpolant.degree), 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return interpolant.truncate(high, dtype)


def _product(kernels: tuple[Node, ...], plans: Mapping[Node, KernelPlan], d: int, allowance: float) -> ProductPlan:
    if not kernels:
        return ProductPlan((), ((0,) * d,), 0.0)
    columns = [_columns(plans[k]) for k in kernels]
    sizes = [c.size for c in columns]
    if prod(sizes) > 50 * MAX_FEATURES:
        raise RefusedError(
            "route sums: the latent dimension exceeds the budget", [f"{prod(sizes)} features to choose from", FEWER]
        )
    weights = columns[0]
    for column in columns[1:]:
        weights = np.multiply.outer(weights, column).ravel()
    order = np.argsort(weights)
    mass = np.cumsum(weights[order])
    drop = order[: int(np.searchsorted(mass, allowance))]
    left_out = sum_up(weights[drop]) * (1 + 1e-12)
    indices = cartesian(*(_multi_indices(plans[k]) for k in kernels))
    dropped = set(drop.tolist())
    support = []
    for place, parts in enumerate(indices):
        if place in dropped:
            continue
        beta = [0] * d
        for kernel, part in zip(kernels, parts, strict=True):
            for c, b in zip(plans[kernel].coordinates, part, strict=True):
                beta[c] = b
        support.append(tuple(beta))
    return ProductPlan(kernels, tuple(support), left_out)


def _columns(plan: KernelPlan) -> FloatArray:
    """sup_x |c_β(x)| ≤ Σ_α |A_{αβ}| for every y-feature β."""
    return np.asarray(np.abs(plan.truncation.matrix()).sum(axis=0))


def _multi_indices(plan: KernelPlan) -> list[MultiIndex]:
    return list(cartesian(range(plan.degree + 1), repeat=len(plan.coordinates)))

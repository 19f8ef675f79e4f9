"""What the three passes of the bound share: the network on cells, its kernels' errors, and one arithmetic.

Passes: the interpolation remainder alone in real arithmetic; with the coefficients' gap; all with rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.cells import Cells
from sumformer.certificates.checker.features import FeatureRounding, Rounding
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations
from sumformer.certificates.checker.network import Network
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.upward import times
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Tokens
from sumformer.targets.node import Node
from sumformer.targets.tree import Token

MAX_FEATURES = 2**24
RoundingOf = Callable[[Network, Arithmetic, tuple[Floats, ...], int], Rounding]
"""Of a network in an arithmetic, with its weights, for at most so many tokens."""


@dataclass(frozen=True)
class Setting:
    """Everything a pass does not change; `own_token`: x is known to be among the tokens summed."""

    net: Network
    tokens: Tokens
    weights: tuple[Floats, ...]
    cells: Cells
    own_token: bool = False
    rounding: RoundingOf = FeatureRounding

    @cached_property
    def x(self) -> list[Interval]:
        return self.cells.token("x")

    @cached_property
    def y(self) -> list[Interval]:
        return self.cells.token("y")

    @cached_property
    def kernels(self) -> tuple[Interval, ...]:
        """K_g on the cells."""
        ops = IntervalOperations()
        return tuple(
            self.cells.full(components(kernel.expression, ops, self._tokens)[0]) for kernel in self.net.kernels
        )

    def _tokens(self, part: Node) -> list[Interval] | None:
        if isinstance(part, Token):
            return self.x if part.name == "x" else self.y
        return None


@dataclass(frozen=True)
class Pass:
    """One pass: e_g per kernel, left-out mass per product, and the arithmetic."""

    setting: Setting
    arithmetic: Arithmetic
    kernel_errors: tuple[float, ...]
    left_out: tuple[float, ...]
    kernel_shares: tuple[float, ...] = ()  # sup |K̃_g − K_g|/|K_g|, ∞ where it is not known; none for ∞ throughout
    notes: list[str] = field(default_factory=list)  # why an error is unbounded, for the message

    @cached_property
    def ops(self) -> TrackedOperations:
        return TrackedOperations(self.arithmetic)

    @cached_property
    def rounding(self) -> Rounding:
        s = self.setting
        return s.rounding(s.net, self.arithmetic, s.weights, s.tokens.maximum)

    @cached_property
    def x(self) -> list[Tracked]:
        """Tokens are floating-point numbers: no error."""
        return [Tracked(value, np.asarray(0.0)) for value in self.setting.x]

    @cached_property
    def channels(self) -> tuple[Tracked, ...]:
        """b(y) on the cells, as computed; finite in every channel, because N multiplies some features by 0."""
        y = [Tracked(value, np.asarray(0.0)) for value in self.setting.y]
        out = []
        for channel in self.setting.net.channels:
            value = components(channel.factor, self.ops, lambda part: y if isinstance(part, Token) else None)[0]
            size = 8 * self.setting.tokens.maximum * (value.value.magnitude + value.error)
            if not bool(np.all(size < self.arithmetic.huge)):
                raise Unproved("a channel's sum over tokens may overflow")
            out.append(Tracked(self.setting.cells.full(value.value), self.setting.cells.spread(value.error)))
        return tuple(out)

    def kernel_size(self, product: int) -> Floats:
        """Π_g |K_g|, the largest on every cell."""
        size: Floats = np.ones(())
        for g in self.setting.net.products[product].kernels:
            size = times(size, self.setting.kernels[g].magnitude)
        return size

    def kernel_share(self, g: int) -> float:
        """sup |K̃_g − K_g|/|K_g|."""
        return self.kernel_shares[g] if self.kernel_shares else np.inf

    def kernel_error(self, product: int) -> Floats:
        """sup |Π K̃ restricted − Π K| on every cell: Π(|K_g| + e_g) − Π|K_g|, and the mass left out."""
        size, error = np.ones(()), np.zeros(())
        for g in self.setting.net.products[product].kernels:
            magnitude = self.setting.kernels[g].magnitude
            e = np.minimum(self.kernel_errors[g], _share(self.kernel_share(g), magnitude))
            size, error = times(size, magnitude), times(error, magnitude + e) + times(size, e)
        return error + self.left_out[product]


def _share(share: float, magnitude: Floats) -> Floats:
    """Of |K|, rounded up: products of bounds do not underflow to 0."""
    return times(share, magnitude) if share < np.inf else np.full_like(magnitude, np.inf)


def left_out_mass(net: Network, weights: tuple[Floats, ...], product: int) -> float:
    """Σ_{β ∉ support} Π_g Σ_α |A_g[α, β_g]|, as everything less the support."""
    kernels = [net.kernels[g] for g in net.products[product].kernels]
    if not kernels:
        return 0.0
    if prod(kernel.shape[1] for kernel in kernels) > MAX_FEATURES:
        raise Unproved(f"product {product} has more than {MAX_FEATURES} features")
    sums: Floats = np.ones(())
    coordinates: list[int] = []
    for g, kernel in zip(net.products[product].kernels, kernels, strict=True):
        column = np.abs(weights[g]).sum(axis=0).reshape([n + 1 for n in kernel.y_degrees])
        sums = times(sums.reshape(sums.shape + (1,) * column.ndim), column)
        coordinates += kernel.coordinates
    sums = sums.copy()
    for beta in net.products[product].support:
        sums[tuple(beta[c] for c in coordinates)] = 0.0
    return float(sums.sum()) * (1 + 1e-9)

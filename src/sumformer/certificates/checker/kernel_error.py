"""Step 2: e_g ≥ sup |K_g − K̃_g| over the box, K̃_g = Σ A_{αβ} T_α(u) T_β(v) with A exactly the stored numbers.

K − K̃ = (K − I_N K) + I_N(K − K̃), because K̃ has degree ≤ N in every variable: the *remainder* is the theorem's, and the
*gap* is the interpolant of the differences K − K̃ at the nodes, whose sup-norm is bounded on a finer grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sumformer.certificates.checker.chebyshev_grid import (
    coefficients,
    contract,
    evaluation_error,
    nodes,
    sup_norm,
    values_at_nodes,
)
from sumformer.certificates.checker.ellipse import Variables, maximum_on_ellipse, remainder
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.network import Kernel, Network
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Token

MAX_NODES = 65**4  # degree 64 in four variables; some 3 GiB


@dataclass(frozen=True)
class KernelConstants:
    """What the certificate records of a kernel: the interpolation degree, ρ and M for each variable, and results."""

    degree: int
    rhos: tuple[float, ...]
    maxima: tuple[float, ...]
    remainder: float
    dropped: float
    range: tuple[float, float]


@dataclass(frozen=True)
class KernelError:
    """sup |K − I_N K| ≤ remainder, least_gap ≤ sup |I_N K − K̃| ≤ gap; the proved M, and the range of K at the nodes."""

    remainder: float
    gap: float
    maxima: tuple[float, ...]
    least_gap: float
    node_range: tuple[float, float]

    @property
    def total(self) -> float:
        return (self.remainder + self.gap) * (1 + 1e-15)


def variables_of(kernel: Kernel, net: Network) -> Variables:
    """x in the kernel's coordinates, then y."""
    entries = tuple((name, c, net.centre[c], net.radius[c]) for name in ("x", "y") for c in kernel.coordinates)
    return Variables(entries, net.d)


def kernel_error(kernel: Kernel, A: Floats, net: Network, recorded: KernelConstants) -> KernelError:
    """Both parts, from the recorded degree and ellipses."""
    variables = variables_of(kernel, net)
    count = len(variables.entries)
    if len(recorded.rhos) != count:
        raise Unproved(f"expected an ellipse for each of {count} variables")
    if max((*kernel.x_degrees, *kernel.y_degrees)) > recorded.degree:
        raise Unproved(f"the network's degrees exceed the interpolation degree {recorded.degree}")
    if (recorded.degree + 1) ** count > MAX_NODES:
        raise Unproved(f"{recorded.degree + 1}^{count} interpolation nodes are more than the checker evaluates")
    maxima = tuple(
        maximum_on_ellipse(kernel.expression, variables, i, rho, goal)
        for i, (rho, goal) in enumerate(zip(recorded.rhos, recorded.maxima, strict=True))
    )
    left = remainder(maxima, recorded.rhos, recorded.degree)
    exact = _kernel_at_nodes(kernel.expression, variables, recorded.degree + 1)
    gap, least = _gap(kernel, A, exact)
    return KernelError(left, gap, maxima, least, (float(exact.lo.min()), float(exact.hi.max())))


def _gap(kernel: Kernel, A: Floats, exact: Interval) -> tuple[float, float]:
    """Bounds of sup |I_N(K − K̃)| from above and below: data error times Λ^V, the computed polynomial, its rounding."""
    n, axes = exact.lo.shape[0], exact.lo.ndim
    shape = tuple(k + 1 for k in (*kernel.x_degrees, *kernel.y_degrees))
    approximate = A.reshape(shape)
    for axis, length in enumerate(shape):
        approximate = contract(approximate, values_at_nodes(length - 1, n), axis)
    middle = exact.lo + (exact.hi - exact.lo) / 2
    difference = middle - approximate
    if not bool(np.isfinite(difference).all()):
        raise Unproved("K − K̃ is not finite at the interpolation nodes")
    error = float((exact.hi - exact.lo).max()) / 2 + evaluation_error(float(np.abs(A).sum()), list(shape))
    error += 2.0**-50 * float(np.abs(middle).max())
    c, each = coefficients(difference)
    lebesgue = 2 / math.pi * math.log(n) + 1
    gap = (sup_norm(c) + each * c.size + error * lebesgue**axes) * (1 + 1e-9)
    return gap, max(0.0, float(np.abs(difference).max()) - 2 * error)


def _kernel_at_nodes(expression: Node, variables: Variables, n: int) -> Interval:
    """K at all nodes, an array of `axes` dimensions; sub-expressions are evaluated on the axes they mention."""
    ops, t, axes = IntervalOperations(), nodes(n), len(variables.entries)
    zero = Interval(np.zeros((1,) * axes), np.zeros((1,) * axes))
    tokens = {name: [zero] * variables.d for name in ("x", "y")}
    for axis, (name, c, centre, radius) in enumerate(variables.entries):
        shape = tuple(n if a == axis else 1 for a in range(axes))
        point = Interval(t.lo.reshape(shape), t.hi.reshape(shape))
        tokens[name][c] = ops.add(from_fraction(centre), ops.mul(from_fraction(radius), point))

    def leaf(part: Node) -> list[Interval] | None:
        return tokens[part.name] if isinstance(part, Token) else None

    return components(expression, ops, leaf)[0].broadcast_to((n,) * axes)

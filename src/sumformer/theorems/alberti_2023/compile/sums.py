"""The Sumformer of route sums as a program: φ → means → Q = A Σ → V(x) = Σ_α T_α(u) Q_α → reductions → the tree.

V is contracted kernel by kernel, Σ_α T_α(u_1) (Σ_α' T_α'(u_2) Q_αα'). Reductions over the others read Σ − φ(x)/n in
the place of Σ: only here, and for sums, n enters. A quotient of two sums over one kernel leaves out what they
share and becomes
  q = e^{log(num + c·den) − log den} − c,   num + c·den ≥ den > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as cartesian
from math import prod

import numpy as np

from sumformer.algebra.rounding import FloatArray, gamma
from sumformer.errors import RefusedError
from sumformer.gadgets.saw import Prefer
from sumformer.nn.expression_parts import shift
from sumformer.targets import Binary, Node, Reduce, Slice, to_source
from sumformer.targets.domain import Tokens
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.compile.features import Features, MultiIndex
from sumformer.theorems.alberti_2023.compile.functional import Functional, total
from sumformer.theorems.alberti_2023.compile.program import Program, constant
from sumformer.theorems.alberti_2023.compile.ratio import SharedKernel, quotient
from sumformer.theorems.alberti_2023.compile.tree import TreeCompiler
from sumformer.theorems.alberti_2023.components import component
from sumformer.theorems.alberti_2023.decomposition import Term
from sumformer.theorems.alberti_2023.kernel_errors import KernelErrors, Switches
from sumformer.theorems.alberti_2023.plan import Plan

Range = tuple[float, float]


@dataclass(frozen=True)
class Compiled:
    """A program and what it puts out, one functional per coordinate; `made_for` n tokens, or None for any."""

    program: Program
    outputs: tuple[Functional, ...]
    made_for: int | None


class SumsProgram:
    """One plan of route sums, compiled for the given numbers of tokens."""

    def __init__(
        self, plan: Plan, tokens: Tokens, cells: Cells, ranges: dict[tuple[Reduce, int], Range], prefer: Prefer
    ) -> None:
        self.plan, self.tokens, self.cells, self.ranges = plan, tokens, cells, ranges
        self.program = Program(prefer)
        self.made_for: int | None = None  # n, once something depended on it
        self.box = plan.decomposition.expander.box
        self.trees = TreeCompiler(self.program, self.box, self.reduction, self._quotient)
        self.features = Features(self.program, self.box, self.trees)
        self.sums = {s.reduction: s for s in plan.decomposition.sums}
        self.errors = KernelErrors(plan, Switches(rounding=False))
        self._reduced: dict[tuple[Reduce, int], Functional] = {}
        self._contracted: dict[tuple[object, ...], Functional] = {}
        self._columns: dict[Node, dict[MultiIndex, tuple[Functional, Functional]]] = {}

    def compile(self) -> Compiled:
        """Every output coordinate of the target."""
        expression = self.plan.decomposition.expression
        parts = [self.trees.compile(component(expression, c)) for c in range(expression.width)]
        return Compiled(self.program, tuple(self.program.read(f) for f in parts), self.made_for)

    # ---- reductions

    def reduction(self, node: Reduce, c: int) -> Functional:
        """Σ_t a_t(x) V_t(x), with the range the target itself has there."""
        if (node, c) not in self._reduced:
            terms = self.sums[node].components[c]
            parts = [self.program.product(self.trees.compile(t.own_node), self.series(t, node.kind)) for t in terms]
            count = self._count(node.kind)
            f = total(parts).scaled(count, 2.0**-53 * count)
            because = {"reduction": to_source(node), "component": c}
            self._reduced[node, c] = self.program.sum(f, self.ranges[node, c], because, name=f"{node.kind}")
        return self._reduced[node, c]

    def _count(self, kind: str) -> float:
        """What turns the mean over all tokens (less the own one) into the reduction."""
        if kind == "mean":
            return 1.0
        n = self._n(kind)
        return n / (n - 1) if kind == "mean_others" else float(n)

    def _n(self, kind: str) -> int:
        """The number of tokens, for what depends on it; the weights are then for this one."""
        if not self.tokens.exact:
            raise RefusedError(
                f"{kind}(…) depends on the number of tokens, which uniform attention cannot count",
                [f"say how many there are (--tokens 5); now it is {self.tokens.formula()}, or write mean(…)"],
            )
        self.made_for = self.tokens.maximum
        return self.tokens.maximum

    # ---- V_t = mean_k b(x_k) p_t(v_k) K̃(x, x_k)

    def series(self, t: Term, kind: str) -> Functional:
        """The mean of b p K̃ over all tokens, without the own one (divided by n all the same) for …_others."""
        others = kind.endswith("others")
        key = (t.channel, t.polynomial, t.kernels, others)
        if key not in self._contracted:
            rows, errors = self._rows(t)
            leaves = [
                self._gather(t.channel, row, others, float(error)) for row, error in zip(rows, errors, strict=True)
            ]
            axes = [self._x_features(k) for k in t.kernels]
            self._contracted[key] = self._contract(axes, leaves)
        return self._contracted[key]

    def _contract(self, axes: Sequence[Sequence[MultiIndex]], leaves: list[Functional]) -> Functional:
        """Σ over the first axis of T_α(u) times what the other axes make of its part of the leaves."""
        if not axes:
            return leaves[0]
        size = len(leaves) // len(axes[0])
        parts = []
        for i, alpha in enumerate(axes[0]):
            inner = self._contract(axes[1:], leaves[i * size : (i + 1) * size])
            parts.append(self.program.product(self.features.tensor(alpha), inner))
        return total(parts)

    def _x_features(self, kernel: Node) -> list[MultiIndex]:
        plan = self.plan.kernels[kernel]
        return [
            self._index(plan.coordinates, a) for a in cartesian(range(plan.degree + 1), repeat=len(plan.coordinates))
        ]

    def _index(self, places: Sequence[int], degrees: Sequence[int]) -> MultiIndex:
        beta = [0] * self.box.d
        for c, k in zip(places, degrees, strict=True):
            beta[c] = k
        return tuple(beta)

    def _rows(self, t: Term) -> tuple[list[dict[MultiIndex, float]], FloatArray]:
        """A (p ⊛ ·): for each α the weights of the features T_β, and a bound of what rounding them changes."""
        support = self.plan.products[t.kernels].support
        indices: dict[MultiIndex, int] = {}
        entries = [(s, i, float(w)) for s, beta in enumerate(support) for i, w in shift(beta, t.polynomial).items()]
        for _, index, _ in entries:
            indices.setdefault(index, len(indices))
        moved = np.zeros((len(support), len(indices)))
        for s, index, w in entries:
            moved[s, indices[index]] += w
        matrix = np.ones((1, len(support)))
        for kernel in t.kernels:
            plan = self.plan.kernels[kernel]
            sizes = [plan.degree + 1] * len(plan.coordinates)
            columns = [int(np.ravel_multi_index([beta[c] for c in plan.coordinates], sizes)) for beta in support]
            part = plan.truncation.matrix()[:, columns]
            matrix = (matrix[:, None, :] * part[None, :, :]).reshape(len(matrix) * len(part), len(support))
        weights, size = matrix @ moved, np.abs(matrix) @ np.abs(moved)
        largest = float(self._channel_size(t.channel))
        errors = size.sum(1) * largest * gamma(len(support) + 8 + len(t.kernels), 2.0**-53)
        names = list(indices)
        return [{names[j]: float(w) for j, w in enumerate(row) if w} for row in weights], errors

    def _channel_size(self, channel: Node) -> float:
        lo, hi = self.program.range(self.features.weighted(channel, (0,) * self.box.d))
        return max(abs(lo), abs(hi))

    def _gather(self, channel: Node, row: dict[MultiIndex, float], others: bool, error: float) -> Functional:
        """Σ_β w_β (mean φ_β − [others] φ_β(x)/n), one coordinate of its own where it is used."""
        known = self._columns.setdefault(channel, {})  # one look-up by the expression, not one for each weight
        parts = []
        own = 1 / self._n("…_others") if others else 0.0
        for beta, w in row.items():
            if beta not in known:
                feature = self.features.weighted(channel, beta)
                known[beta] = feature, feature if feature.constant else self.features.mean(channel, beta)
            feature, mean = known[beta]
            if feature.constant:
                parts.append(constant(feature.offset * w * (1.0 - own)))
                continue
            parts.append(mean.scaled(w))
            if others:
                parts.append(feature.scaled(-w / self._n("…_others")))
        f = total(parts)
        return f if f.constant else self.program.sum(f, weight_error=error)

    # ---- quotients

    def _quotient(self, node: Node) -> Functional | None:
        """Σ b K g / Σ b K with b, K > 0, one coordinate of it."""
        if not (isinstance(node, Binary) and node.op == "/"):
            return None
        (top, c), (bottom, _) = _component(node.left), _component(node.right)
        if top is None or bottom is None or bottom.width != 1 or top.kind != bottom.kind:
            return None
        shared = SharedKernel.find(self.plan, self.cells, self.errors, top, c, bottom)
        if shared is None:
            return None
        den = self.series(shared.denominator, bottom.kind)
        num = total(
            self.program.product(self.trees.compile(ratio), self.series(t, top.kind)) for ratio, t in shared.numerator
        )
        n = self._n(bottom.kind) if bottom.kind.endswith("others") else 0
        return quotient(self.program, num, den, shared, (n - 1) / n if n else 1.0)


def _component(node: Node) -> tuple[Reduce | None, int]:
    if isinstance(node, Reduce):
        return node, 0
    if isinstance(node, Slice) and isinstance(node.arg, Reduce):
        return node.arg, node.start
    return None, 0


def gathered(plan: Plan) -> int:
    """How many weights read the means, about: rows α times features β of every V_t, before any is made."""
    found: dict[tuple[object, ...], int] = {}
    for s in plan.decomposition.sums:
        others = s.reduction.kind.endswith("others")
        for t in (t for terms in s.components for t in terms):
            kernels = [plan.kernels[kernel] for kernel in t.kernels]
            rows = prod((k.degree + 1) ** len(k.coordinates) for k in kernels)
            found[t.channel, t.polynomial, t.kernels, others] = rows * len(plan.products[t.kernels].support)
    return sum(found.values())

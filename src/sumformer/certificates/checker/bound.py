"""Step 3: B' ≥ sup_X ‖f(X) − N(X)‖_∞, the largest error over all coordinates and cells of x."""

from __future__ import annotations

import numpy as np

from sumformer.certificates.checker.network import Term
from sumformer.certificates.checker.proof import Pass
from sumformer.certificates.checker.quotient import quotient, shared
from sumformer.certificates.checker.reduction_error import reduce_all
from sumformer.certificates.checker.tracked import Tracked
from sumformer.certificates.checker.tree_values import components, reduction_at
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Reduce, Token

SAFETY = 1 + 1e-9  # covers the float64 rounding of the bound's own positive formulas (some thousand operations)


class Evaluation:
    """N's evaluation of the target, on cells: reductions inner first, then the expression."""

    def __init__(self, p: Pass) -> None:
        self.p = p
        self.terms: dict[Reduce, tuple[tuple[Term, ...], ...]] = {}
        self.reduced: dict[Reduce, list[Tracked]] = {}

    def result(self) -> list[Tracked]:
        for reduction in self.p.setting.net.reductions:
            self.terms[reduction.node] = reduction.components
            self.reduced[reduction.node] = reduce_all(self.p, reduction, self.leaf)
        return components(self.p.setting.net.expression, self.p.ops, self.leaf)

    def leaf(self, part: Node) -> list[Tracked] | None:
        if isinstance(part, Token):
            return self.p.x if part.name == "x" else None
        if isinstance(part, Reduce):
            return self.reduced[part]
        if isinstance(part, Binary) and part.op == "/":
            return self.quotients(part)
        return None

    def quotients(self, node: Binary) -> list[Tracked] | None:
        """Every coordinate by the rule for normalised kernels, or None."""
        out = []
        for c in range(node.width):
            above, below = (reduction_at(side, c if side.width > 1 else 0) for side in (node.left, node.right))
            if above is None or below is None:
                return None
            terms = [self.terms[reduce][coordinate] for reduce, coordinate in (above, below)]
            pattern = shared(terms[0], terms[1], (above[0].kind, below[0].kind))
            value = None if pattern is None else quotient(self.p, pattern, self.leaf)
            if value is None:
                return None
            out.append(value)
        return out


def bound(p: Pass) -> float:
    """The largest error, after the rounding to the type of the result."""
    with np.errstate(all="ignore"):
        worst = 0.0
        for value in Evaluation(p).result():
            error = value.error
            if p.arithmetic.u and p.arithmetic.output is not None:
                u, tiny, huge = p.arithmetic.output
                size = value.value.magnitude + error
                error = np.where(size * (1 + 2 * u) < huge, error + u * size + tiny, np.inf)
            if not bool(np.all(error < np.inf)):  # NaN is refused here, not lost in a maximum
                raise Unproved("; ".join(["the error is not bounded", *sorted(set(p.notes))]))
            worst = max(worst, float(np.max(error)))
        return worst * SAFETY

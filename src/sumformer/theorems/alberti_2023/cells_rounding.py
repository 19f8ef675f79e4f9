"""sup |fl(N(X)_1) − N(X)_1| of a network on cells: h(x, V(p)), V(p) = ⊕_j c_j e(m_p, m_j, …), c_j tokens in cell j.

Tracked values over cells of x; bodies at m_p, which lies within r of x, and the worst over m_j. With k products,
  |fl(Σ c_j e_j) − Σ c_j e_j| ≤ Σ c_j E_j,   E = err + γ_k (|e| + err) + tiny   (a mean is divided, one rounding more).
Quotients f = Σ c w a/Σ c w with w of one sign and sums that err by E and E': what is left of f is at most
  Σ c (E + |f| E')/Σ c (|w| − E') ≤ max_j (E + |f| E')/(|w| − E').
"""

from __future__ import annotations

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray, gamma
from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.targets import Node, Reduce, postorder, reductions
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.mixture_slopes import cells_of, splits_of, widened
from sumformer.targets.normalised_slopes import weighted_mean
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.ranges import reduction_ranges
from sumformer.theorems.alberti_2023.tree_rounding import rounded_out

PAIRS = 2**12


def cells_rounding(f: Target, arithmetic: Arithmetic, radius: FloatArray, products: int) -> float:
    """The bound, the last rounding to the output's dtype included; refuses where a value may not exist.

    `radius` r (d,), and the most `products` c_j e_j in a sum.
    """
    reduction_ranges(f.expression, Cells(f.box, PAIRS), f.tokens)  # refuses early, by the sub-expression
    with np.errstate(all="ignore"):  # what overflows has no bound
        return rounded_out(lambda: _Rounding(f, arithmetic, radius, products).of(f.expression), arithmetic)


class _Rounding:
    """One evaluation: x over cells (P, d), m_p within r of them, m_j over the cells (Q, d)."""

    def __init__(self, f: Target, arithmetic: Arithmetic, radius: FloatArray, products: int) -> None:
        self.a, self.tokens, self.products = arithmetic, f.tokens, products
        self.ops = TrackedOperations(arithmetic.u, arithmetic.tiny, arithmetic.huge)
        self.x = cells_of(f.box, splits_of(PAIRS, f.d))
        self.inside, self.y = widened(self.x, f.box, radius), self.x
        self.known: dict[Reduce, Tracked] = {}
        self.quotients: dict[Node, Tracked | None] = {}

    def of(self, expression: Node) -> Tracked:
        for part in reductions(expression):
            self.known[part] = self._reduced(part, self._body(part.body, part.width))
        env = Environment(x=_exact(self.x), reduce=self.known.__getitem__)
        return evaluate(expression, self.ops, env, self._quotients_in(expression))

    def _quotients_in(self, expression: Node) -> dict[Node, Tracked]:
        """Those that stand in it, outside further reductions."""
        found = {}
        for node in postorder(expression, into_reductions=False):
            if node not in self.quotients:
                self.quotients[node] = self._quotient(node)
            quotient = self.quotients[node]
            if quotient is not None:
                found[node] = quotient
        return found

    def _body(self, node: Node, width: int) -> Tracked:
        """e(m_p, m_j, R): (P, Q, width)."""

        env = Environment(
            x=_exact(self.inside[:, None]), y=_exact(self.y[None]), reduce=lambda part: _across(self.known[part])
        )
        quotients = {part: _across(value) for part, value in self._quotients_in(node).items()}
        value = evaluate(node, self.ops, env, quotients)
        shape = (len(self.x.lo), len(self.y.lo), width)
        return Tracked(value.range.broadcast_to(shape), np.broadcast_to(value.error, shape))

    def _most(self, kind: str) -> int:
        return self.tokens.maximum - kind.endswith("_others")

    def _per_token(self, kind: str, body: Tracked) -> FloatArray:
        """E, for each token of a sum, and of a mean after its division."""
        size = body.magnitude + body.error
        steps = gamma(min(self._most(kind), self.products), self.a.u)
        each = (body.error + steps * size + self.a.tiny) * INFLATE
        if kind.startswith("mean"):
            each = (each + self.a.u * (size + each) + self.a.tiny) * INFLATE
        return np.asarray(np.where(self._most(kind) * (size + each) <= self.a.huge, each, np.inf))

    def _reduced(self, part: Reduce, body: Tracked) -> Tracked:
        value = Interval.sealed(body.range.lo.min(1), body.range.hi.max(1), body.range.defined.all(1))
        if part.kind in ("max", "min"):
            return Tracked(value, body.error.max(1))
        each = self._per_token(part.kind, body).max(1)
        if part.kind.startswith("mean"):
            return Tracked(value, each)
        most = self._most(part.kind)
        least = self.tokens.minimum - part.kind.endswith("_others")
        return Tracked(value * Interval(float(least), float(most)), most * each * INFLATE)

    def _quotient(self, node: Node) -> Tracked | None:
        """Σ w a/Σ w, where the rule above holds."""
        found = weighted_mean(node)
        if found is None:
            return None
        bottom, w_node, a_node = found
        top = next(p for p in node.children if isinstance(p, Reduce))
        w, a = self._body(w_node, node.width), self._body(a_node, node.width)
        above, below = (self._per_token(r.kind, self._body(r.body, node.width)) for r in (top, bottom))
        least = np.maximum(w.range.lo, -w.range.hi)  # |w|, of one sign
        if not bool(((w.range.lo > 0).all() or (w.range.hi < 0).all()) and (least > below).all()):
            return None
        value = Interval.sealed(a.range.lo.min(1), a.range.hi.max(1), a.range.defined.all(1))
        size = value.abs_upper()[:, None]
        left = ((above + size * below) * INFLATE / (least - below)).max(1) * INFLATE
        error = (left + self.a.u * (value.abs_upper() + left) + self.a.tiny) * INFLATE
        return Tracked(value, np.where(value.abs_upper() + error <= self.a.huge, error, np.inf))


def _across(value: Tracked) -> Tracked:
    """The same for every y."""
    return Tracked(value.range[:, None], value.error[:, None])


def _exact(tokens: Interval) -> Tracked:
    return Tracked(tokens, np.zeros(tokens.shape))

"""b(x) Π_c T_{β_c}(u_c) as values of a program: T_{2k} = 2T_k² − 1, T_{2k+1} = 2T_k T_{k+1} − T_1, or one function.

With prefer = "depth" what depends on one coordinate is one piecewise-linear function, knots shared by all degrees.
"""

from __future__ import annotations

from collections.abc import Callable

from sumformer.gadgets.chebyshev import chebyshev
from sumformer.targets import Const, Node, Token, postorder, substitute
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.functional import OFFSET, Functional, total
from sumformer.theorems.alberti_2023.compile.program import Program, constant
from sumformer.theorems.alberti_2023.compile.tree import TreeCompiler
from sumformer.theorems.alberti_2023.components import coordinates

MultiIndex = tuple[int, ...]


class Features:
    """The features of one program over one box."""

    def __init__(self, program: Program, box: Box, trees: TreeCompiler) -> None:
        self.program, self.box, self.trees = program, box, trees
        self._known: dict[object, Functional] = {}

    def chebyshev(self, c: int, k: int) -> Functional:
        """T_k(u_c)."""
        return self._once((c, k), lambda: self._chebyshev(c, k))

    def tensor(self, beta: MultiIndex) -> Functional:
        """T_β(u)."""
        return self._once(("tensor", beta), lambda: self._tensor(beta))

    def weighted(self, factor: Node, beta: MultiIndex) -> Functional:
        """b(x) T_β(u), b an expression in y alone."""
        return self._once((factor, beta), lambda: self._weighted(factor, beta))

    def mean(self, factor: Node, beta: MultiIndex) -> Functional:
        """The mean over tokens of b T_β, value by value of it."""

        def make() -> Functional:
            f = self.weighted(factor, beta)
            slack = dict(f.slack)
            parts = [self.program.mean(Functional.of({v: 1.0})).scaled(w, slack.get(v, 0.0)) for v, w in f.terms]
            return total(parts).shifted(f.offset, slack.get(OFFSET, 0.0))

        return self._once(("mean", factor, beta), make)

    def _once(self, key: object, make: Callable[[], Functional]) -> Functional:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _chebyshev(self, c: int, k: int) -> Functional:
        u = self.program.input(c)
        if k == 0:
            return constant(1)
        if k == 1:
            return u
        name = f"T{k}(u{c})"
        if self.program.prefer == "depth":
            return self.program.function(chebyshev(k), u, name)
        half = self.chebyshev(c, k // 2)
        if k % 2 == 0:
            return self._bounded(self.program.square(half).scaled(2).shifted(-1), name)
        product = self.program.product(half, self.chebyshev(c, k // 2 + 1))
        return self._bounded(product.scaled(2) + u.scaled(-1), name)

    def _tensor(self, beta: MultiIndex) -> Functional:
        out = constant(1)
        for c, k in enumerate(beta):
            if k:
                out = self._narrow(self.program.product(out, self.chebyshev(c, k)))
        return out

    def _weighted(self, factor: Node, beta: MultiIndex) -> Functional:
        own = _own(factor)
        if isinstance(own, Const):
            return self.program.product(constant(own.value), self.tensor(beta))
        used = set(coordinates(own)) | {c for c, k in enumerate(beta) if k}
        if self.program.prefer == "depth" and len(used) == 1 and _smooth(own):
            (c,) = used
            g, u = self.trees.of_coordinate(own, c), self.program.input(c)
            if not self.program.steep(g, u):
                return self.program.function(g * chebyshev(beta[c]) if beta[c] else g, u)
        return self.program.product(self.trees.compile(own), self.tensor(beta))

    def _bounded(self, f: Functional, name: str) -> Functional:
        """A Chebyshev polynomial lies in [−1, 1]."""
        return self.program.sum(f, (-1.0, 1.0), {"chebyshev": name}, name=name)

    def _narrow(self, f: Functional) -> Functional:
        """Products of numbers in [−1, 1] stay there."""
        for v, _ in f.terms:
            value = self.program.values[v]
            if value.op == "product":
                value.lo, value.hi = max(value.lo, -1.0), min(value.hi, 1.0)
        return f


def _own(factor: Node) -> Node:
    tokens = [part for part in postorder(factor) if isinstance(part, Token) and part.name == "y"]
    return substitute(factor, {t: Token("x", t.d) for t in tokens})


def _smooth(node: Node) -> bool:
    return TreeCompiler.smooth(node)

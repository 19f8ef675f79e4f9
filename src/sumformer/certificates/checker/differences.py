"""K(x, y) = k(x − y): a tree in which x and y stand only in affine sub-trees e with e(x, y) = q + Σ_c a_c (x_c − y_c).

Then k is the same tree with q + Σ_c a_c z_c in their places, in any arithmetic. A kernel that is not written so is not
recognised, even if it is a function of differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sumformer.certificates.checker.tree_values import Operations, V, applied, components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Token
from sumformer.targets.walk import postorder

Variable = tuple[str, int]


@dataclass(frozen=True)
class Affine:
    """constant + Σ slope · variable, without slopes of 0."""

    constant: Fraction
    slopes: Mapping[Variable, Fraction]

    def scaled(self, factor: Fraction) -> Affine:
        slopes = {v: factor * a for v, a in self.slopes.items()} if factor else {}
        return Affine(factor * self.constant, slopes)

    def plus(self, other: Affine) -> Affine:
        both = {v: self.slopes.get(v, Fraction(0)) + other.slopes.get(v, Fraction(0)) for v in _union(self, other)}
        return Affine(self.constant + other.constant, {v: a for v, a in both.items() if a})

    @property
    def is_difference(self) -> bool:
        """Whether the slopes of x_c and y_c cancel."""
        return all(self.slopes.get(("y" if v[0] == "x" else "x", v[1])) == -a for v, a in self.slopes.items())


Known = Affine | None  # None: not seen to be affine


def _union(a: Affine, b: Affine) -> list[Variable]:
    return [*a.slopes, *(v for v in b.slopes if v not in a.slopes)]


class AffineOperations:
    """Sums, and products and quotients with constants; everything else is unknown."""

    def const(self, value: Fraction) -> Known:
        return Affine(value, {})

    def add(self, a: Known, b: Known) -> Known:
        return None if a is None or b is None else a.plus(b)

    def sub(self, a: Known, b: Known) -> Known:
        return self.add(a, self.neg(b))

    def neg(self, a: Known) -> Known:
        return None if a is None else a.scaled(Fraction(-1))

    def mul(self, a: Known, b: Known) -> Known:
        if a is None or b is None or (a.slopes and b.slopes):
            return None
        return b.scaled(a.constant) if not a.slopes else a.scaled(b.constant)

    def div(self, a: Known, b: Known) -> Known:
        if a is None or b is None or b.slopes or not b.constant:
            return None
        return a.scaled(1 / b.constant)

    def power(self, v: Known, k: int) -> Known:
        return v if k == 1 else None

    def total(self, values: list[Known]) -> Known:
        out: Known = Affine(Fraction(0), {})
        for value in values:
            out = self.add(out, value)
        return out

    def norm(self, values: list[Known]) -> Known:
        return None

    def extremum(self, op: str, a: Known, b: Known) -> Known:
        return None

    def function(self, fn: str, v: Known) -> Known:
        return None


@dataclass(frozen=True)
class DifferenceKernel:
    """k, with the sub-trees that are replaced."""

    expression: Node
    d: int
    replaced: Mapping[Node, tuple[Affine, ...]]

    @staticmethod
    def of(expression: Node, d: int) -> DifferenceKernel:
        """From the root down to the first sub-trees that are differences."""
        known, ops = dict[Node, list[Known]](), AffineOperations()
        for part in postorder(expression):
            if isinstance(part, Token):
                known[part] = [Affine(Fraction(0), {(part.name, c): Fraction(1)}) for c in range(part.width)]
            else:
                known[part] = applied(part, ops, [known[child] for child in part.children])
        replaced: dict[Node, tuple[Affine, ...]] = {}
        left, seen = [expression], set[Node]()
        while left:
            node = left.pop()
            if node in seen:
                continue
            seen.add(node)
            forms = tuple(form for form in known[node] if form is not None and form.is_difference)
            if len(forms) == len(known[node]):
                replaced[node] = forms
            elif isinstance(node, Token):
                raise Unproved("its expression is not written as a function of differences x[c] − y[c]")
            else:
                left += node.children
        return DifferenceKernel(expression, d, replaced)

    @property
    def coordinates(self) -> frozenset[int]:
        return frozenset(c for forms in self.replaced.values() for form in forms for _, c in form.slopes)

    def value(self, ops: Operations[V], z: Mapping[int, V]) -> V:
        """k at z_c = x_c − y_c."""

        def leaf(part: Node) -> list[V] | None:
            if part in self.replaced:
                return [self._form(form, ops, z) for form in self.replaced[part]]
            return [ops.const(Fraction(0))] * self.d if isinstance(part, Token) else None

        return components(self.expression, ops, leaf, self.replaced)[0]

    def _form(self, form: Affine, ops: Operations[V], z: Mapping[int, V]) -> V:
        parts = [_times(ops, a, z[c]) for (name, c), a in form.slopes.items() if name == "x"]
        if form.constant or not parts:
            parts.append(ops.const(form.constant))
        return ops.total(parts) if len(parts) > 1 else parts[0]


def _times(ops: Operations[V], a: Fraction, value: V) -> V:
    """a·value, without a product where a = ±1."""
    if abs(a) == 1:
        return value if a == 1 else ops.neg(value)
    return ops.mul(ops.const(a), value)

"""The ideal program of a compiled network: values v_1, v_2, …, each an input, a mean, a sum, g(t) or a·b of others.

Exact real arithmetic; every value knows a range that holds it. Values of phase "x" depend on the own token alone,
"mean" are what attention brings, "psi" is all that comes after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Literal

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.chebyshev import X
from sumformer.gadgets.elementary import SQRT
from sumformer.gadgets.function import CELLS, Curvature, curvature, jet
from sumformer.gadgets.root import ROOT, RootShape
from sumformer.gadgets.saw import Prefer
from sumformer.targets import Const, Extremum, Node, Unary, postorder
from sumformer.theorems.alberti_2023.compile.functional import OFFSET, Functional

Phase = Literal["x", "mean", "psi"]
Op = Literal["input", "mean", "sum", "function", "product"]
SQUARE = X**2
POSITIVE = Extremum("max", X, Const(Fraction(0)))
_SLACK = 1e-12
_FAR = 0.01  # of its largest argument: a root that stays above is one function like any other
_COUNTED = 8 * 2.0**-53  # of a number's size: so much rounding of weights is counted with the gadget that reads it


@dataclass
class Value:
    """`of`: the functionals read; `shape`: for a function, slope and curvature on a range `pad` wider than needed."""

    index: int
    op: Op
    of: tuple[Functional, ...]
    lo: float
    hi: float
    phase: Phase
    expression: Node | None = None
    coordinate: int = -1
    weight_error: float = 0.0
    because: Mapping[str, Any] | None = None
    shape: Curvature | RootShape | None = None
    pad: float = 0.0
    name: str = ""

    @property
    def size(self) -> float:
        return max(abs(self.lo), abs(self.hi))

    @property
    def is_square(self) -> bool:
        return self.op == "function" and self.expression is SQUARE


class Program:
    """Values are made once: asking again for the same one returns it."""

    def __init__(self, prefer: Prefer) -> None:
        self.prefer = prefer
        self.values: list[Value] = []
        self._known: dict[Any, int] = {}

    # ---- values

    def input(self, c: int) -> Functional:
        """u_c ∈ [−1, 1]."""
        return self._make(("input", c), "input", (), -1.0, 1.0, "x", coordinate=c, name=f"u{c}")

    def mean(self, f: Functional, name: str = "") -> Functional:
        """The mean over tokens of a value of the own token."""
        v = self.values[self.single(f)]
        named = name or f"mean {v.name}"
        return self._make(("mean", v.index), "mean", (Functional.of({v.index: 1.0}),), v.lo, v.hi, "mean", name=named)

    def sum(
        self,
        f: Functional,
        within: tuple[float, float] | None = None,
        because: Mapping[str, Any] | None = None,
        weight_error: float = 0.0,
        name: str = "",
    ) -> Functional:
        """t itself, given a coordinate of its own; `within` is a narrower range, known for the reason given."""
        lost = self.lost(f)
        if f.single is not None and self.values[f.single].op == "sum":  # it has its coordinate: what is known grows
            value = self.values[f.single]
            if within is not None:
                value.lo, value.hi = max(value.lo, within[0]), min(value.hi, within[1])
                value.because = because or value.because
            value.weight_error = max(value.weight_error, weight_error) + lost
            return Functional(f.terms)
        lo, hi = self.range(f)
        lo, hi = lo - weight_error - lost, hi + weight_error + lost
        if within is not None:
            lo, hi = max(lo, within[0]), min(hi, within[1])
        phase: Phase = "psi" if any(self.values[v].phase != "x" for v, _ in f.terms) else "x"
        out = self._make(("sum", f, within), "sum", (f,), lo, hi, phase, name=name)
        made = self.values[out.terms[0][0]]
        made.because, made.weight_error = because or made.because, max(weight_error + lost, made.weight_error)
        return out

    def function(self, g: Node, f: Functional, name: str = "") -> Functional:
        """g(t), g an expression in x with d = 1."""
        f = self.read(f)
        lo, hi = self.range(f)
        shape, pad = _padded(g, lo, hi)
        inside = curvature(g, lo, hi).range if lo < hi else shape.range
        out = self._make(("function", g, f), "function", (f,), *inside, self._phase(f), expression=g, name=name)
        made = self.values[out.terms[0][0]]
        made.shape, made.pad = shape, pad
        return out

    def square(self, f: Functional, name: str = "") -> Functional:
        """t²."""
        if f.constant:
            return self.product(f, f)
        return self.function(SQUARE, f, name)

    def root(self, f: Functional, name: str = "") -> Functional:
        """√t of a t ≥ 0; near 0 it is √max(t, 0), as what t errs by may take it below."""
        f = self.read(f)
        lo, hi = self.range(f)
        if lo > _FAR * hi:
            return self.function(SQRT, f, name)
        if hi <= 0:
            return constant(0)
        shape = RootShape(lo, hi)
        key = ("function", ROOT, f)
        out = self._make(key, "function", (f,), *shape.range, self._phase(f), expression=ROOT, name=name)
        made = self.values[out.terms[0][0]]
        made.shape, made.pad = shape, 0.04 * hi
        return out

    def steep(self, g: Node, f: Functional) -> bool:
        """Whether g(t) takes a root near 0."""
        lo, hi = self.range(self.read(f))
        ends = np.linspace(lo, hi, CELLS + 1)
        for part in postorder(g):
            if isinstance(part, Unary) and part.fn == "sqrt":
                under = jet(part.arg, Interval(ends[:-1], ends[1:])).value
                if not float(under.lo.min()) > _FAR * float(under.hi.max()):
                    return True
        return False

    def positive(self, f: Functional) -> Functional:
        """max(t, 0), exactly."""
        f = self.read(f)
        lo, hi = self.range(f)
        if hi <= 0:
            return constant(0)
        key = ("function", POSITIVE, f)
        out = self._make(key, "function", (f,), max(lo, 0.0), max(hi, 0.0), self._phase(f), POSITIVE, name="max(·, 0)")
        made = self.values[out.terms[0][0]]
        made.shape, made.pad = Curvature(np.array([lo, hi]), np.zeros(1), 1.0, (made.lo, made.hi)), float("inf")
        return out

    def product(self, a: Functional, b: Functional, name: str = "") -> Functional:
        """a·b; a constant factor only scales."""
        if a.constant or b.constant:
            factor, other = (a, b) if a.constant else (b, a)
            return other.scaled(factor.offset, dict(factor.slack).get(OFFSET, 0.0))
        a, b = sorted((self.read(a), self.read(b)), key=lambda f: f.terms)
        if a == b:
            return self.square(a, name)
        (al, ah), (bl, bh) = self.range(a), self.range(b)
        ends = [al * bl, al * bh, ah * bl, ah * bh]
        slack = _SLACK * max(map(abs, ends))
        phase: Phase = "psi" if "psi" in (self._phase(a), self._phase(b)) else "x"
        return self._make(("product", a, b), "product", (a, b), min(ends) - slack, max(ends) + slack, phase, name=name)

    # ---- functionals

    def range(self, f: Functional) -> tuple[float, float]:
        """Where t lies, from the ranges of its values."""
        lo = hi = f.offset
        size = abs(f.offset)
        for v, w in f.terms:
            value = self.values[v]
            lo += min(w * value.lo, w * value.hi)
            hi += max(w * value.lo, w * value.hi)
            size += abs(w) * value.size
        return lo - _SLACK * size, hi + _SLACK * size

    def read(self, f: Functional) -> Functional:
        """f as a gadget reads it: means are gathered in the attention's block, long sums get a coordinate.

        So do sums whose weights have cancelled: what rounding changed is then an error of that coordinate.
        """
        lost = self.lost(f)
        cancelled = lost > _COUNTED * max(map(abs, self.range(f)))
        gathered = Functional(tuple((v, w) for v, w in f.terms if self.values[v].phase != "psi"))
        if any(self.values[v].phase == "mean" for v, _ in gathered.terms):
            rest = Functional(tuple((v, w) for v, w in f.terms if self.values[v].phase == "psi"), f.offset)
            f = rest + self.sum(gathered)
        f = Functional(f.terms, f.offset, () if cancelled or len(f.terms) > 2 else f.slack)
        return self.sum(f, weight_error=lost) if cancelled or len(f.terms) > 2 else f

    def lost(self, f: Functional) -> float:
        """What the rounding of its weights can have changed of a number."""
        return sum(e * (1.0 if v == OFFSET else self.values[v].size) for v, e in f.slack) * (1 + _SLACK)

    def single(self, f: Functional) -> int:
        """The value that is f, made if there is none."""
        return f.single if f.single is not None else self.sum(f).terms[0][0]

    def _phase(self, f: Functional) -> Phase:
        return "psi" if any(self.values[v].phase != "x" for v, _ in f.terms) else "x"

    def _make(
        self,
        key: Any,
        op: Op,
        of: tuple[Functional, ...],
        lo: float,
        hi: float,
        phase: Phase,
        expression: Node | None = None,
        coordinate: int = -1,
        name: str = "",
    ) -> Functional:
        if key not in self._known:
            index = len(self.values)
            self._known[key] = index
            label = f"{name}#{index}" if name else f"v{index}"
            self.values.append(Value(index, op, of, lo, hi, phase, expression, coordinate, name=label))
        return Functional.of({self._known[key]: 1.0})


def constant(value: Fraction | int | float) -> Functional:
    """A number, rounded to float64."""
    try:
        rounded = float(value)
    except OverflowError:
        rounded = inf
    if not isfinite(rounded):
        raise RefusedError("a constant of the network is beyond float64")
    error = float(abs(Fraction(value) - Fraction(rounded))) * (1 + _SLACK)
    return Functional((), rounded, ((OFFSET, error),) if error else ())


def as_node(value: Fraction | float) -> Node:
    """An exact constant."""
    return Const(Fraction(value))


def _padded(g: Node, lo: float, hi: float) -> tuple[Curvature, float]:
    """Curvature on a slightly wider range, so that an argument with an error still lies in it."""
    width = max(hi - lo, 1e-6)
    slope = curvature(g, lo, hi).slope if lo < hi else None
    pad = 0.04 * width
    for _ in range(12):
        try:
            found = curvature(g, lo - pad, hi + pad)
            if slope is None or found.slope <= 1.2 * slope or (found.slope == float("inf") == slope):
                return found, pad
        except DomainError:
            pass
        pad /= 3
    found = curvature(g, lo - pad, hi + pad)
    return found, pad

"""Every function and product of a program as a gadget with its tolerance, over places that carry the values' names."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

from sumformer.algebra.rounding import FloatArray
from sumformer.gadgets.extremum import positive
from sumformer.gadgets.function import function
from sumformer.gadgets.product import product
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.root import RootShape, root
from sumformer.gadgets.square import square
from sumformer.gadgets.units import Gadget
from sumformer.theorems.alberti_2023.compile.budget import Budget, functional_error, radius
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.program import POSITIVE, Program, Value


@dataclass(frozen=True, eq=False)
class Realised:
    """A gadget and the values it computes; `errors` of each; `area` bounds what its partial results add to them."""

    gadget: Gadget
    values: tuple[int, ...]
    errors: tuple[float, ...]
    area: float
    ranges: tuple[tuple[float, float], ...]


def place(v: int) -> str:
    """The place of a value, before it has a coordinate."""
    return str(v)


def reading(f: Functional) -> Reading:
    return Reading({place(v): w for v, w in f.terms}, f.offset)


def realise(budget: Budget, tolerances: FloatArray, errors: FloatArray) -> list[Realised]:
    """All gadgets, for arguments with these errors; functions of one argument share units where that is shorter."""
    program = budget.program
    out: list[Realised] = []
    together: dict[Functional, list[Value]] = {}
    for v in program.values:
        if not budget.sensitivity[v.index]:
            continue
        if v.op == "product" or v.is_square:
            out.append(_saw(program, v, float(tolerances[v.index]), errors))
        elif v.op == "function" and v.expression is POSITIVE:
            out.append(_positive(program, v))
        elif isinstance(v.shape, RootShape):
            out.append(_root(program, v, float(tolerances[v.index])))
        elif v.op == "function":
            together.setdefault(v.of[0], []).append(v)
    for f, values in together.items():
        for group in _groups(values, tolerances):
            out.append(_functions(program, f, group, tolerances))
    return out


def _saw(program: Program, v: Value, tolerance: float, errors: FloatArray) -> Realised:
    arguments = []
    for f in v.of:
        lo, hi = program.range(f)
        e = functional_error(f, errors) * (1 + 1e-6) + 1e-13 * max(abs(lo), abs(hi), 1e-280)
        arguments.append(reading(f).within(lo - e, hi + e))
    ranges = tuple((t.lo, t.hi) for t in arguments)
    if v.is_square:
        (t,) = arguments
        area = t.radius**2
        gadget = square(t, place(v.index), tolerance, program.prefer)
    else:
        a, b = arguments
        area = a.radius * b.radius
        ideal = prod(radius(program, f) for f in v.of)
        if tolerance >= ideal:  # only the linear part: exact but for (a − a_0)(b − b_0) at the ideal arguments
            gadget = product(a, b, place(v.index), inf, program.prefer)
            return Realised(gadget, (v.index,), (ideal * (1 + 2.0**-39),), area, ranges)
        gadget = product(a, b, place(v.index), tolerance, program.prefer)
    return Realised(gadget, (v.index,), (gadget.error,), area, ranges)


def _positive(program: Program, v: Value) -> Realised:
    f = v.of[0]
    gadget = Gadget("function", ((positive(reading(f), place(v.index)),),), 0.0)
    return Realised(gadget, (v.index,), (0.0,), 0.0, (program.range(f),))


def _root(program: Program, v: Value, tolerance: float) -> Realised:
    lo, hi = program.range(v.of[0])
    t = reading(v.of[0]).within(lo - v.pad, hi + v.pad)
    gadget = root(t, place(v.index), tolerance)
    return Realised(gadget, (v.index,), (gadget.error,), 0.0, ((t.lo, t.hi),))


def _groups(values: list[Value], tolerances: FloatArray) -> list[list[Value]]:
    """All together, or each alone: whichever has fewer weights."""
    knots = [v.shape.knots_at(float(tolerances[v.index])) for v in values if v.shape is not None]
    if len(values) > 1 and (2 + len(values)) * max(knots) * 1.2 < 3 * sum(knots):
        return [values]
    return [[v] for v in values]


def _functions(program: Program, f: Functional, values: list[Value], tolerances: FloatArray) -> Realised:
    lo, hi = program.range(f)
    pad = min(v.pad for v in values)
    t = reading(f).within(lo - pad, hi + pad)
    wanted = {}
    for v in values:
        assert v.expression is not None
        wanted[place(v.index)] = (v.expression, float(tolerances[v.index]))
    gadget = function(t, wanted)
    return Realised(gadget, tuple(v.index for v in values), gadget.errors, 0.0, ((t.lo, t.hi),))

"""What each kind of gadget adds to the stream: the value it stands for, and by how much it errs.

The units of an entry read one number s = ⟨row, z⟩ and add F_c(s) = Σ_i W_2[c, i] R(s + b_1[i]) and a constant to each
coordinate c they write. With ẑ = z ± e the error is that of F against the intended function on the range of ẑ, and
what e does to the intended function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.compiled.jets import JetOperations, jet
from sumformer.certificates.checker.compiled.ledger import Entry, Functional, Gadget, Layer
from sumformer.certificates.checker.compiled.piecewise import Pieces, gap, pieces, shifted
from sumformer.certificates.checker.compiled.stream import TINY, UP, Slot, Stream
from sumformer.certificates.checker.interval import Floats, Interval
from sumformer.certificates.checker.verification import Unproved


@dataclass
class Units:
    """One entry's weights: (coordinate, weight) of the row, knots −b_1, W_2 by coordinate, its constants."""

    row: dict[int, float]
    bias: Floats
    writes: dict[int, Floats]
    constants: dict[int, float]


@dataclass
class Added:
    """What one block adds to a coordinate."""

    content: dict[str, float] = field(default_factory=dict)
    error: Floats = field(default_factory=lambda: np.zeros(2))
    size: float = 0.0
    constant: Fraction = field(default_factory=lambda: Fraction(0))
    written: bool = False
    cleared: bool = False
    owner: object = None
    begun: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


class Rules:
    """The gadgets of one block, against the stream before it; `slots` is what FC sees."""

    def __init__(self, stream: Stream, slots: list[Slot], layer: Layer, rounding: Floats) -> None:
        self.stream, self.slots, self.layer, self.rounding = stream, slots, layer, rounding
        self.added: dict[int, Added] = {}
        self.held = {slot.value: slot for slot in slots if slot.value is not None}
        order = np.argsort(layer.columns_2, kind="stable")
        self._columns, self._rows, self._weights = layer.columns_2[order], layer.rows_2[order], layer.values_2[order]
        self.covered = np.zeros(len(layer.b_1), dtype=np.int64)

    # ---- weights

    def units(self, entry: Entry) -> Units:
        """The entry's weights; its rows of W_1 must be equal and it may write only where it says."""
        layer, count = self.layer, entry.end - entry.first
        self.covered[entry.first : entry.end] += 1
        a, b = np.searchsorted(layer.rows_1, [entry.first, entry.end])
        each = (b - a) // count if count else 0
        columns, values = layer.columns_1[a:b], layer.values_1[a:b]
        if each * count != b - a:
            raise Unproved("units of one entry read different numbers")
        columns, values = columns.reshape(count, each), values.reshape(count, each)
        rows = layer.rows_1[a:b].reshape(count, each)
        same = (columns == columns[:1]).all() and (values == values[:1]).all()
        if not same or not (rows == np.arange(entry.first, entry.end)[:, None]).all():
            raise Unproved("units of one entry read different numbers")
        row = dict(zip(columns[0].tolist(), values[0].tolist(), strict=True)) if count else {}
        writes = {c: np.zeros(count) for c in entry.writes}
        a, b = np.searchsorted(self._columns, [entry.first, entry.end])
        coordinates = self._rows[a:b]
        for c in np.unique(coordinates).tolist():
            if c not in writes:
                raise Unproved(f"units {entry.first} … write to coordinate {c}, which the ledger does not name")
            mine = coordinates == c
            writes[c][self._columns[a:b][mine] - entry.first] = self._weights[a:b][mine]
        for c, value in entry.constants.items():
            self.at(c).constant += Fraction(value)
        return Units(row, layer.b_1[entry.first : entry.end], writes, dict(entry.constants))

    def at(self, c: int) -> Added:
        return self.added.setdefault(c, Added())

    def read(self, row: dict[int, float]) -> tuple[dict[str, float], Floats]:
        """The row by names of values, and the error of s."""
        names: dict[str, float] = {}
        error = np.zeros(2)
        for c, weight in row.items():
            name = self.slots[c].value
            if name is None:
                raise Unproved(f"coordinate {c} is read while it holds no complete value")
            names[name] = weight
            error = error + abs(weight) * self.slots[c].error
        return names, error * UP

    def error_of(self, f: Functional) -> Floats:
        """|t̂ − t| where every value of f is in the stream."""
        error = np.zeros(2)
        for name, weight in f.terms:
            if name not in self.held:
                raise Unproved(f"{name} is needed but not in the stream")
            error = error + abs(weight) * self.held[name].error
        return error * UP

    def expect(self, units: Units, f: Functional) -> Floats:
        names, error = self.read(units.row)
        if names != {name: w for name, w in f.terms if w}:
            raise Unproved("units do not read what their value is a function of")
        return error

    def write(self, c: int, content: dict[str, float], error: Floats, size: float) -> None:
        added = self.at(c)
        added.written = True
        for name, weight in content.items():
            if name in added.content:
                raise Unproved(f"{name or 'an offset'} is written twice")
            added.content[name] = weight
        added.error = added.error + error + np.array([0.0, TINY])
        added.size += size

    def overwrite(self, c: int) -> Added:
        added = self.at(c)
        if added.cleared:
            raise Unproved(f"coordinate {c} is overwritten twice")
        added.cleared = True
        return added

    # ---- one stage each

    def identity(self, gadget: Gadget, entry: Entry) -> None:
        """What no gadget writes of a sum."""
        (name,) = gadget.values
        value, units = self.stream.values[name], self.units(entry)
        if value.op != "sum" or not set(units.writes) <= {value.at} or not set(units.constants) <= {value.at}:
            raise Unproved("an identity that is not of a sum, or writes elsewhere")
        offset = value.of[0].offset
        moved = Fraction(units.constants.get(value.at, 0.0)) - Fraction(offset)
        error, size, content = np.zeros(2), 0.0, {"": offset} if offset else {}
        if len(units.bias):
            names, error = self.read(units.row)
            if len(units.bias) != 1 or units.writes.get(value.at, np.zeros(1))[0] != 1.0:
                raise Unproved("an identity is not one unit with weight 1")
            if any(value.of[0].terms.count((n, w)) != 1 for n, w in names.items()):
                raise Unproved("an identity reads other weights than the sum has")
            low, high = self.stream.span(Functional(tuple(names.items()), 0.0))
            bias = float(units.bias[0])
            short = max(0.0, float(error[1]) * UP - (low + bias))
            moved += Fraction(bias)
            error, size = error + np.array([0.0, short]), max(0.0, high + float(error[1]) + bias) * UP
            content = content | names
        self.write(value.at, content, error + np.array([0.0, float(abs(moved)) * UP]), size)

    def clear(self, gadget: Gadget, entry: Entry) -> None:
        """stream − R(stream + b_1) + c = c − b_1, whatever it held, as long as stream + b_1 ≥ 0."""
        (name,) = gadget.values
        value, units = self.stream.values[name], self.units(entry)
        c = value.at
        if units.row != {c: 1.0} or self.slots[c].value != name or self.slots[c] is not self.stream.slots[c]:
            raise Unproved("a clear does not read the value it takes away")
        if set(units.writes) != {c} or units.writes[c].tolist() != [-1.0] or not set(units.constants) <= {c}:
            raise Unproved("a clear is not one unit with weight −1")
        low = self.stream.spans[name][0]
        bias, error = float(units.bias[0]), float(self.slots[c].error[1])
        short = max(0.0, error * UP - (low + bias) + 4e-16 * (abs(low) + abs(bias)))
        left = float(abs(Fraction(units.constants.get(c, 0.0)) - Fraction(bias))) * UP
        added = self.overwrite(c)
        added.error = added.error + np.array([0.0, left + short])

    def function(self, gadget: Gadget, entry: Entry) -> None:
        """Σ w g(t) into each coordinate, over the values written there."""
        values = [self.stream.values[name] for name in gadget.values]
        units, f = self.units(entry), values[0].of[0]
        error = self.expect(units, f)
        if any(v.op != "function" or v.of[0] != f for v in values):
            raise Unproved("a function gadget's values are not functions of one number")
        goals: dict[int, list[tuple[str, float]]] = {}
        for v in values:
            c, weight = self.stream.destination(v.name)
            goals.setdefault(c, []).append((v.name, weight))
        if set(goals) != set(units.writes) or not set(units.constants) <= set(goals):
            raise Unproved("a function gadget writes elsewhere than to its values")
        low, high = self.stream.span(f)
        e = float(error[1]) * UP
        slack = 4e-16 * (abs(low) + abs(high) + e + abs(f.offset)) + 1e-300
        low, high = low - e - f.offset - slack, high + e - f.offset + slack
        for c, goal in goals.items():
            p = pieces(-units.bias, units.writes[c], low, high)
            ends = shifted(p.ends, f.offset)
            cells = Interval(ends.lo[:-1], ends.hi[1:])
            below, above, slope = self._against(goal, p, ends, cells)
            constant = units.constants.get(c, 0.0)
            delta = float(np.maximum(abs(below + constant), abs(above + constant))) * UP  # keeps what is no number
            carried = slope * error if error.any() else error
            self.write(c, dict(goal), carried + delta, p.size)

    def _against(
        self, goal: list[tuple[str, float]], p: Pieces, ends: Interval, cells: Interval
    ) -> tuple[float, float, float]:
        """[min, max] of F − Σ w g, and sup |Σ w g'|."""
        ops = JetOperations()
        at, over = [], []
        for name, weight in goal:
            g, factor = self.stream.values[name].expression, ops.const(Fraction(weight))
            if g is None:
                raise Unproved(f"{name} has no expression")
            at.append(ops.mul(factor, jet(g, ends)))
            over.append(ops.mul(factor, jet(g, cells)))
        whole = ops.total(over)
        return *gap(p, ops.total(at).value, whole), float(whole.first.magnitude.max())

    # ---- products

    def linear_product(self, gadget: Gadget, entry: Entry) -> None:
        """a_0 b + b_0 a − a_0 b_0 in place of a b: (a − a_0)(b − b_0) is left out."""
        (name,) = gadget.values
        value, units = self.stream.values[name], self.units(entry)
        (c, W), (f, g) = self.stream.destination(name), value.of
        if set(units.writes) != {c} or len(units.bias) != 1 or not set(units.constants) <= {c}:
            raise Unproved("a linear product is not one unit")
        a0, b0 = ((Fraction(low) + Fraction(high)) / 2 for low, high in gadget.ranges)
        names, read_error = self.read(units.row)
        wanted = {n: b0 * Fraction(w) for n, w in f.terms}
        for n, w in g.terms:
            wanted[n] = wanted.get(n, Fraction(0)) + a0 * Fraction(w)
        out = Fraction(float(units.writes[c][0]))
        drift = Fraction(0)
        for n in wanted.keys() | names.keys():
            off = abs(Fraction(W) * wanted.get(n, Fraction(0)) - out * Fraction(names.get(n, 0.0)))
            drift += off * Fraction(self.size_of(n))
        bias = Fraction(float(units.bias[0]))
        offset = b0 * Fraction(f.offset) + a0 * Fraction(g.offset) - a0 * b0
        drift += abs(out * bias + Fraction(units.constants.get(c, 0.0)) - Fraction(W) * offset)
        low, high = self.stream.span(Functional(tuple(names.items()), 0.0))
        short = max(0.0, float(read_error[1]) * UP - (low + float(bias)))
        (al, ah), (bl, bh) = self.stream.span(f), self.stream.span(g)
        left = float(_reach(al, ah, a0) * _reach(bl, bh, b0))
        ea, eb = self.error_of(f), self.error_of(g)
        error = abs(W) * (left + abs(float(b0)) * ea + abs(float(a0)) * eb + TINY) * UP
        error = error + np.array([0.0, float(drift) * UP + abs(float(out)) * short])
        self.write(c, {name: W}, error, abs(float(out)) * max(0.0, high + float(read_error[1]) + float(bias)) * UP)

    def size_of(self, name: str) -> float:
        if name not in self.held:
            raise Unproved(f"{name} is needed but not in the stream")
        return self.held[name].size


def _reach(low: float, high: float, middle: Fraction) -> Fraction:
    """sup |t − middle|."""
    return max(abs(Fraction(low) - middle), abs(Fraction(high) - middle))

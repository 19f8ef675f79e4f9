"""The residual stream, block by block: which ideal values each coordinate holds, within which error.

stream_c = Σ w v + offset ± error over ideal values v. Block(X) = X + FC(X + Att(X)) adds what the units write, entry by
entry of the ledger (`rules.py`), and rounding: with γ of the entries of a row,
  r_1 = γ (|W_1||z| + |b_1|),   r = |W_2| r_1 + γ (|W_2| (|W_1||z| + |b_1|) + |b_2|) + u |X + FC|.
Errors are pairs: of the gadgets alone, and of everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.compiled.element import Element
from sumformer.certificates.checker.compiled.files import Compiled, tensor
from sumformer.certificates.checker.compiled.head import Head
from sumformer.certificates.checker.compiled.ledger import Functional, Layer, Value
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.verification import Unproved

U = 2.0**-53
TINY = 1e-290  # more than all underflows of one block
UP = 1 + 1e-12
HUGE = 1e300
LEAST = 2.0**-1022
SMALL = 1e-90  # what is not 0 is no smaller, and 1/SMALL no larger: no square or product of three of them underflows


@dataclass
class Slot:
    """One coordinate: Σ content (the key "" is an offset), the value it is if it is one, who works there."""

    content: dict[str, float] = field(default_factory=dict)
    error: Floats = field(default_factory=lambda: np.zeros(2))
    size: float = 0.0
    value: str | None = None
    owner: object = None
    pending: set[str] = field(default_factory=set)  # saws that have written a part

    @property
    def free(self) -> bool:
        return not self.content and self.owner is None and not self.pending


class Stream:
    """The state before a block, and what the rules ask of it."""

    def __init__(self, net: Compiled, program: Mapping[str, Element], head: Head) -> None:
        self.net, self.head = net, head
        self.values = {v.name: v for v in net.values}
        self.spans = {name: (float(e.range.lo), float(e.range.hi)) for name, e in program.items()}
        self.silent: dict[str, Floats] = {}  # values that no unit writes, and how large they are
        self.readers: dict[str, list[tuple[str, float]]] = {}
        for v in net.values:
            for f in v.of if v.op == "sum" else ():
                for name, weight in f.terms:
                    self.readers.setdefault(name, []).append((v.name, weight))
        self._moderate()
        self.slots = [Slot() for _ in range(net.width)]
        self._read_in()

    def _moderate(self) -> None:
        """Values, the weights they are read with, and those of the network."""
        sizes = [max(abs(low), abs(high)) for low, high in self.spans.values()]
        for v in self.net.values:
            sizes += [abs(w) for f in v.of for w in (*(weight for _, weight in f.terms), f.offset)]
        own = [
            t.ravel() for name, t in self.net.tensors.items() if not name.startswith("ideal.") and t.dtype.kind == "f"
        ]
        size = np.abs(np.concatenate([np.array(sizes), *own]))
        if bool(((size < SMALL) & (size > 0) | ~(size <= 1 / SMALL)).any()):
            raise Unproved(f"numbers beyond {1 / SMALL:g}, or below {SMALL:g} and not 0, are not followed")

    # ---- spans and errors of functionals

    def span(self, f: Functional) -> tuple[float, float]:
        """Where t lies."""
        low = high = size = 0.0
        for name, w in f.terms:
            a, b = self.spans[name]
            low, high = low + min(w * a, w * b), high + max(w * a, w * b)
            size += abs(w) * max(abs(a), abs(b))
        slack = 1e-15 * (len(f.terms) + 1) * (size + abs(f.offset))
        return low + f.offset - slack, high + f.offset + slack

    def destination(self, name: str) -> tuple[int, float]:
        """The coordinate to which a value is written, and times what: its own, or that of the one sum that uses it."""
        value = self.values[name]
        if value.at >= 0:
            return value.at, 1.0
        readers = self.readers.get(name, [])
        if len(readers) != 1 or self.values[readers[0][0]].at < 0:
            raise Unproved(f"{name} has no coordinate, and not one sum that uses it")
        return self.values[readers[0][0]].at, readers[0][1]

    # ---- the ends

    def _read_in(self) -> None:
        net = self.net
        weight = tensor(net.tensors, "read_in.weight", (net.width, net.d))
        bias = tensor(net.tensors, "read_in.bias", (net.width,))
        if net.width < 1 + net.d or len(net.centre) != net.d or len(net.radius) != net.d:
            raise Unproved("read-in: the stream is narrower than [1 | u]")
        rest, shift = weight.copy(), bias.copy()
        rest[range(1, 1 + net.d), range(net.d)] = 0.0
        shift[: 1 + net.d] = 0.0
        if rest.any() or shift.any() or bias[0] != 1.0:
            raise Unproved("read-in: it has weights beside [1 | (x − centre)/radius]")
        self.slots[0] = Slot({"": 1.0}, np.zeros(2), 1.0)
        for c, (centre, radius) in enumerate(zip(net.centre, net.radius, strict=True)):
            w, b = float(weight[1 + c, c]), float(bias[1 + c])
            x = float(abs(centre) + radius) * UP
            off = abs(_exact(w) - 1 / radius) * (abs(centre) + radius) + abs(_exact(b) + centre / radius)
            rounding = 4 * U * (abs(w) * x + abs(b)) + TINY
            self.slots[1 + c] = Slot({f"\0u{c}": 1.0}, np.array([0.0, float(off) * UP + rounding]), 1 + rounding)
            self.slots[1 + c].size += float(off) * UP

    def read_out(self) -> list[Floats]:
        """The errors of every output."""
        net = self.net
        weight, out = tensor(net.tensors, "read_out.weight", (net.outputs, net.width)), []
        if len(net.read_out) != net.outputs:
            raise Unproved("read-out: the ledger has another number of outputs")
        for row, f in zip(weight, net.read_out, strict=True):
            found: dict[str, float] = {}
            error, size = np.zeros(2), abs(float(row[0]))
            for c in np.flatnonzero(row):
                slot = self.slots[c]
                if c == 0:
                    continue
                if slot.value is None:
                    raise Unproved(f"read-out: coordinate {c} holds no complete value")
                found[slot.value] = float(row[c])
                error = error + abs(float(row[c])) * slot.error
                size += abs(float(row[c])) * slot.size
            if found != {name: w for name, w in f.terms if w} or row[0] != f.offset:
                raise Unproved("read-out: its weights are not those of the ledger's outputs")
            count = np.count_nonzero(row) + 2
            error[1] += count * U * size * 1.01 + TINY
            out.append(error * UP)
        return out

    # ---- blocks

    def settle(self, k: int) -> None:
        """Values that the ledger calls complete before block k: their coordinate holds just that."""
        for value in self.net.values:
            if value.ready == k and value.at >= 0 and value.op != "mean":
                self._settle(value)

    def _settle(self, value: Value) -> None:
        slot = self.slots[value.at]
        wanted = {value.name: 1.0}
        if value.op == "input":
            wanted = {f"\0u{value.coordinate}": 1.0}
        elif value.op == "sum":
            wanted = {name: w for name, w in value.of[0].terms if w}
            if value.of[0].offset:
                wanted[""] = value.of[0].offset
        for name, weight in wanted.items():
            if name in self.silent and name not in slot.content:
                slot.content[name] = weight
                slot.error = slot.error + abs(weight) * self.silent[name] + TINY
        if slot.content != wanted or slot.owner is not None or slot.pending:
            raise Unproved(f"{value.name}: coordinate {value.at} does not hold it before block {value.ready}")
        low, high = self.spans[value.name]
        slot.content, slot.value = {value.name: 1.0}, value.name
        slot.size = min(slot.size, (max(abs(low), abs(high)) + float(slot.error[1])) * UP)

    def with_attention(self) -> list[Slot]:
        """X + Att(X): the means stand where nothing stood."""
        net, slots = self.net, list(self.slots)
        largest = max(slot.size for slot in slots) * (1 + self.head.relative)
        if not max(self.head.mixed, 4.0 * self.head.count) * largest < HUGE:
            raise Unproved("attention: a sum over the tokens may overflow, and 0 times that is no number")
        for i, (source, target) in enumerate(zip(net.sources, net.targets, strict=True)):
            mean, name = self.values[net.mean_names[i]], net.source_names[i]
            here, there = self.slots[target], self.slots[source]
            if mean.op != "mean" or mean.of[0].terms != ((name, 1.0),) or mean.at != target:
                raise Unproved(f"attention: {mean.name} is not the mean of {name}, or stands elsewhere")
            if there.value != name or not here.free:
                raise Unproved(f"attention: coordinate {source} does not hold {name}, or {target} is not free")
            size = there.size * (1 + self.head.relative) + here.size
            error = here.error + there.error
            error = error + np.array([0.0, self.head.relative * there.size + U * size + TINY])
            slots[target] = Slot({mean.name: 1.0}, error * UP, size * UP, mean.name)
        return slots

    def rounding(self, layer: Layer, slots: list[Slot]) -> Floats:
        """r of every coordinate, 0 where nothing is written."""
        z = np.array([slot.size for slot in slots])
        x = np.array([slot.size for slot in self.slots])
        hidden = np.bincount(layer.rows_1, np.abs(layer.values_1) * z[layer.columns_1], len(layer.b_1))
        hidden = hidden + np.abs(layer.b_1)
        if not bool((hidden < HUGE).all()):
            raise Unproved("a hidden unit may overflow, and 0 · ∞ is no number")
        entries = np.bincount(layer.rows_1, minlength=len(layer.b_1)) + 2
        first = _gamma(entries) * hidden + entries * LEAST  # what underflows meets W_2, which may be large
        counts = np.bincount(layer.rows_2, minlength=len(x))
        absolute = np.abs(layer.values_2)
        carried = np.bincount(layer.rows_2, absolute * first[layer.columns_2], len(x))
        written = np.bincount(layer.rows_2, absolute * hidden[layer.columns_2], len(x)) + np.abs(layer.b_2)
        out = (carried + _gamma(counts + 2) * written + U * (x + written)) * (1 + 1e-9) + TINY
        return np.where((counts > 0) | (layer.b_2 != 0), out, 0.0)


def _gamma(k: np.ndarray) -> Floats:
    return k * U / (1 - k * U) * UP


def _exact(value: float) -> Fraction:
    return Fraction(value)


def finite(error: Floats) -> Floats:
    """An error that is not a number is not bounded."""
    if not all(map(math.isfinite, error)):
        raise Unproved("an error is not bounded")
    return error

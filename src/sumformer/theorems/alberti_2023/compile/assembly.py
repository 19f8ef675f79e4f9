"""The weights of every block, from units that name places: FC = Σ over units, W_1 by rows, W_2 by columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.gadgets.identity import identity
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.units import Gadget, Units
from sumformer.theorems.alberti_2023.compile.budget import Budget, functional_error
from sumformer.theorems.alberti_2023.compile.layout import Layout
from sumformer.theorems.alberti_2023.compile.realise import Realised, place, reading
from sumformer.theorems.alberti_2023.compile.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Sparse:
    """Entries (row, column, weight) of a matrix, rows ascending."""

    rows: Any
    columns: Any
    weights: FloatArray
    shape: tuple[int, int]

    def absolute_times(self, vector: FloatArray) -> FloatArray:
        """|W| v for v ≥ 0."""
        return np.bincount(self.rows, np.abs(self.weights) * vector[self.columns], self.shape[0]).astype(np.float64)

    def row_counts(self) -> FloatArray:
        return np.bincount(self.rows, minlength=self.shape[0]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """W_1, b_1, W_2, b_2 of one feed-forward layer."""

    first: Sparse
    b_1: FloatArray
    second: Sparse
    b_2: FloatArray

    @property
    def hidden(self) -> int:
        return int(self.b_1.size)


@dataclass
class Placed:
    """A gadget with its values, as the ledger lists it."""

    kind: str
    values: tuple[int, ...]
    errors: tuple[float, ...]
    stages: list[list[dict[str, Any]]] = field(default_factory=list)


@dataclass
class _Block:
    units: list[Units] = field(default_factory=list)
    constants: dict[str, float] = field(default_factory=dict)
    hidden: int = 0


class Assembly:
    """All blocks and the ledger's list of gadgets."""

    def __init__(
        self, budget: Budget, realised: Sequence[Realised], s: Schedule, layout: Layout, errors: FloatArray
    ) -> None:
        self.budget, self.s, self.layout, self.errors = budget, s, layout, errors
        self._blocks = [_Block() for _ in range(s.blocks)]
        self.gadgets: list[Placed] = []
        for i, r in enumerate(realised):
            self._add(r.gadget, r.values, r.errors, s.start[i])
        self._sums()
        self._clear()
        self.blocks = [self._weights(block) for block in self._blocks]

    # ---- gadgets

    def _add(self, gadget: Gadget, values: tuple[int, ...], errors: tuple[float, ...], start: int) -> None:
        placed = Placed(gadget.kind, values, errors)
        for k, stage in enumerate(gadget.stages):
            placed.stages.append([self._put(units, start + k) for units in stage])
        self.gadgets.append(placed)

    def _put(self, units: Units, block: int) -> dict[str, Any]:
        b = self._blocks[block]
        writes, constants = self._redirected(units.writes), self._redirected(units.constants)
        b.units.append(Units(units.reads, units.offset, units.knots, writes, {}))
        for name, value in constants.items():
            b.constants[name] = b.constants.get(name, 0.0) + float(value)
        first, b.hidden = b.hidden, b.hidden + units.count
        where = self.layout.coordinate
        return {
            "block": block,
            "units": [first, b.hidden],
            "writes": {str(where[name]): name for name in writes},
            "constants": {str(where[name]): float(value) for name, value in constants.items()},
        }

    def _redirected(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """What is written straight into a sum goes there, times its weight."""
        out: dict[str, Any] = {}
        for name, value in items.items():
            into = self.s.into.get(int(name)) if name.isdigit() else None
            key, scaled = (name, value) if into is None else (place(into[0]), value * into[1])
            out[key] = out[key] + scaled if key in out else scaled
        return out

    def _sums(self) -> None:
        program = self.budget.program
        for v, block in self.s.copy_block.items():
            rest = self.s.copied[v]
            if not rest.terms:
                b, name = self._blocks[block], place(v)
                b.constants[name] = b.constants.get(name, 0.0) + rest.offset
                entry = {"block": block, "units": [b.hidden, b.hidden], "writes": {}}
                entry["constants"] = {str(self.layout.coordinate[name]): rest.offset}
                self.gadgets.append(Placed("identity", (v,), (0.0,), [[entry]]))
                continue
            lo, hi = program.range(rest)
            slack = functional_error(rest, self.errors) * (1 + 1e-6) + 1e-12 * max(abs(lo), abs(hi), 1e-290)
            self._add(identity(reading(rest).within(lo - slack, hi + slack), {place(v): 1.0}), (v,), (0.0,), block)

    def _clear(self) -> None:
        for v in sorted(self.layout.cleared):
            value = self.budget.program.values[v]
            lo = value.lo - self.errors[v] * (1 + 1e-6) - 1e-12 * max(value.size, 1e-290)
            gadget = identity(Reading({place(v): 1.0}, lo=lo), {place(v): -1.0})
            self._add(Gadget("clear", gadget.stages, 0.0), (v,), (0.0,), self.s.last_read[v])

    # ---- matrices

    def _weights(self, block: _Block) -> BlockWeights:
        where, width = self.layout.coordinate, self.layout.width
        one: list[tuple[Any, Any, Any]] = []
        two: list[tuple[Any, Any, Any]] = []
        biases, start = [], 0
        for units in block.units:
            rows = np.arange(start, start + units.count)
            columns = np.array([where[name] for name in units.reads], dtype=np.int64)
            weights = np.array(list(units.reads.values()), dtype=np.float64)
            one.append((np.repeat(rows, columns.size), np.tile(columns, units.count), np.tile(weights, units.count)))
            biases.append(units.offset - units.knots)
            for name, bends in units.writes.items():
                kept = bends != 0
                two.append((np.full(int(kept.sum()), where[name]), rows[kept], np.asarray(bends)[kept]))
            start += units.count
        hidden = max(start, 1)
        b_1 = np.concatenate(biases) if biases else np.zeros(1)
        b_2 = np.zeros(width)
        for name, value in block.constants.items():
            b_2[where[name]] += value
        return BlockWeights(_sparse(one, (hidden, width)), b_1, _sparse(two, (width, hidden)), b_2)


def _sparse(parts: list[tuple[Any, Any, Any]], shape: tuple[int, int]) -> Sparse:
    """Entries in order; those at one place are added."""
    if not parts:
        return Sparse(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), shape)
    rows, columns, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    key = rows.astype(np.int64) * shape[1] + columns
    unique, inverse = np.unique(key, return_inverse=True)
    summed = np.bincount(inverse, weights).astype(np.float64)
    return Sparse(unique // shape[1], unique % shape[1], summed, shape)

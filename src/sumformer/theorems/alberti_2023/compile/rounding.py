"""What float64 arithmetic adds, block by block: |fl(FC(z)) − FC(z)| from the stored weights and bounds of |z|.

  r_1 = γ (|W_1||z| + |b_1|),   r_2 = |W_2| r_1 + γ (|W_2|(|W_1||z| + |b_1|) + |b_2| + |z|),
γ = γ_{k+12} with k the entries of the row, in whatever order they are summed, the weights' own rounding included. The
rounding of a value is r_2 at its coordinate over the blocks that write it, and what clearing left there before. A saw's
workspace adds
Σ_k q M^{−2k} R_k, R_{k+1} = (M + 1) R_k + r_2. The head adds γ_{n+k+10} max|φ|.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.gadgets.root import RootShape, modulus
from sumformer.gadgets.square import MARGIN
from sumformer.theorems.alberti_2023.compile.assembly import Assembly
from sumformer.theorems.alberti_2023.compile.budget import Budget, functional_error
from sumformer.theorems.alberti_2023.compile.layout import ONE, Layout
from sumformer.theorems.alberti_2023.compile.program import Value
from sumformer.theorems.alberti_2023.compile.realise import Realised, place
from sumformer.theorems.alberti_2023.compile.schedule import Schedule

U = 2.0**-53


class Rounding:
    """Rounding of every value of one assembled network; `head` counts the roundings of a mean."""

    def __init__(
        self,
        budget: Budget,
        realised: Sequence[Realised],
        s: Schedule,
        layout: Layout,
        assembly: Assembly,
        errors: FloatArray,
        head: int,
    ) -> None:
        self.budget, self.realised, self.s, self.layout = budget, realised, s, layout
        self.errors, self.head = errors, head
        self._owner = {name: i for i, r in enumerate(realised) for name in r.gadget.workspace}
        self._leavings: dict[str, float] = {}
        self.magnitude = self._magnitudes()
        self.by_block = [self._block(assembly, k) for k in range(s.blocks)]

    def local(self) -> FloatArray:
        """What each value adds of its own."""
        program, s = self.budget.program, self.s
        out = np.zeros(len(program.values))
        for v in program.values:
            if not self.budget.sensitivity[v.index]:
                continue
            size = sum(abs(w) * program.values[u].size for f in v.of for u, w in f.terms)
            size += sum(abs(f.offset) for f in v.of)
            if v.op == "input":
                out[v.index] = 8 * U * self.input_size(v.coordinate)
                continue
            if v.op == "product":  # the gadget's own constants are rounded too
                a, b = (max(map(abs, program.range(f))) for f in v.of)
                out[v.index] += 64 * U * a * b
            elif isinstance(v.shape, RootShape):
                out[v.index] += 16 * U * v.size + modulus(v.shape.lo, self._unwritten(v, out) + 32 * U * size)
            elif v.op == "function" and v.shape is not None:
                out[v.index] += 16 * U * (v.shape.slope * size + v.size)
            else:
                out[v.index] += 8 * U * size
            out[v.index] += v.weight_error
            if v.op == "mean":
                out[v.index] += self._left(place(v.index))
            elif v.index not in s.into:
                c = self.layout.coordinate[place(v.index)]
                blocks = range(s.first_write[v.index], s.ready[v.index])
                out[v.index] += sum(float(self.by_block[k][c]) for k in blocks) + self._left(place(v.index))
        for i, r in enumerate(self.realised):
            if r.gadget.workspace:
                out[r.values[0]] += self._workspace(i, r)
        return out

    def _unwritten(self, v: Value, local: FloatArray) -> float:
        """What rounded weights alone make of an argument, four times over: a root shows it, however large the rest."""
        return 4 * functional_error(v.of[0], self.budget.errors(local))

    def of_head(self) -> FloatArray:
        """What the sum over tokens adds to each mean."""
        out = np.zeros(len(self.budget.program.values))
        for v in self.budget.used:
            if v.op == "mean":
                out[v.index] = self.head * U * 1.01 * v.size
        return out

    def input_size(self, c: int) -> float:
        """|w||x| + |b| of the read-in's row: set by the caller's box, u = (x − centre)/radius."""
        return self.read_in[c] if hasattr(self, "read_in") else 3.0

    read_in: Sequence[float]

    def _left(self, name: str) -> float:
        """What is left on the coordinate by those who had it before."""
        before = self.layout.before.get(name)
        if before is None:
            return 0.0
        if before not in self._leavings:
            self._leavings[before] = self._leaves(before)
        return self._leavings[before]

    def _leaves(self, name: str) -> float:
        """Clearing takes off what stands there, up to its rounding; a mean was never in the stream to be cleared."""
        c = self.layout.coordinate[name]
        if not name.isdigit():  # a saw's last layer takes w off for w ≥ −MARGIN
            i = self._owner[name]
            last = self.s.start[i] + self.realised[i].gadget.depth - 1
            cleared = self._saw_errors(i, name)[-1] < MARGIN
            return float(self.by_block[last][c]) if cleared else float("inf")
        if int(name) not in self.layout.cleared:
            return self._left(name)
        return float(self.by_block[self.s.last_read[int(name)]][c])

    def _saw_errors(self, i: int, name: str) -> list[float]:
        """R_1, R_2, …: the errors of w in the workspace, R_{k+1} = (M + 1) R_k + r_2."""
        c, r = self.layout.coordinate[name], self.realised[i]
        pieces = next(u.count for stage in r.gadget.stages for u in stage if name in u.writes)
        errors = [self._left(name) + float(self.by_block[self.s.start[i]][c])]
        for k in range(1, r.gadget.depth - 1):
            errors.append((pieces + 1) * errors[-1] + float(self.by_block[self.s.start[i] + k][c]))
        return errors

    def _workspace(self, i: int, r: Realised) -> float:
        """Σ_k q M^{−2k} R_k over the branches, q = 4·area."""
        total = 0.0
        for name in r.gadget.workspace:
            pieces = float(next(u.count for stage in r.gadget.stages for u in stage if name in u.writes))
            errors = self._saw_errors(i, name)
            total += sum(4 * r.area * 1.01 * pieces ** (-2 * k) * e for k, e in enumerate(errors, 1))
        return total

    def _magnitudes(self) -> FloatArray:
        """A bound of |z_c| for every coordinate, over all blocks."""
        program = self.budget.program
        out = np.zeros(self.layout.width)
        out[ONE] = 1.0
        extra: dict[int, float] = {}
        for r in self.realised:
            for i in r.values:
                owner, weight = self.s.into.get(i, (i, 1.0))
                size = 5 * r.area + (program.values[i].size + self.errors[i] if owner != i else 0.0)
                extra[owner] = extra.get(owner, 0.0) + abs(weight) * size
        for v in program.values:
            name = place(v.index)
            if name not in self.layout.coordinate:
                continue
            size = v.size + self.errors[v.index] + extra.get(v.index, 0.0)
            if v.op == "sum":
                size += sum(abs(w) * program.values[u].size for f in v.of for u, w in f.terms)
                size += sum(abs(f.offset) for f in v.of)
            c = self.layout.coordinate[name]
            out[c] = max(out[c], size * 1.001)
        for r in self.realised:
            for name in r.gadget.workspace:
                c = self.layout.coordinate[name]
                out[c] = max(out[c], 1.01)
        return out

    def _block(self, assembly: Assembly, k: int) -> FloatArray:
        weights, z = assembly.blocks[k], self.magnitude
        hidden = weights.first.absolute_times(z) + np.abs(weights.b_1)
        first = _gamma(weights.first.row_counts() + 12) * hidden
        counts = weights.second.row_counts()
        second = weights.second.absolute_times(first)
        second += _gamma(counts + 12) * (weights.second.absolute_times(hidden) + np.abs(weights.b_2) + z)
        return np.where((counts > 0) | (weights.b_2 != 0), second * 1.001 + 1e-300, 0.0)


def _gamma(k: FloatArray) -> FloatArray:
    return k * U / (1 - k * U) * (1 + 1e-12)

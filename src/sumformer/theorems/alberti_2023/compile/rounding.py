"""What float64 arithmetic adds, block by block: |fl(FC(z)) − FC(z)| from the stored weights and bounds of |z|.

  r_1 = γ (|W_1||z| + |b_1|),   r_2 = |W_2| r_1 + γ (|W_2|(|W_1||z| + |b_1|) + |b_2| + |z|),
γ = γ_{k+4} with k the entries of the row, in whatever order they are summed. The rounding of a value is r_2 at its
coordinate over the blocks that write it, and what clearing left there before. A saw's workspace adds
Σ_k q M^{−2k} R_k, R_{k+1} = M R_k + r_2. The head adds γ_{n+k+10} max|φ|.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.theorems.alberti_2023.compile.assembly import Assembly
from sumformer.theorems.alberti_2023.compile.budget import Budget
from sumformer.theorems.alberti_2023.compile.layout import ONE, Layout
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
        """What clearing the coordinate's last occupant left."""
        before = self.layout.before.get(name)
        if before is None:
            return 0.0
        c = self.layout.coordinate[name]
        if before.isdigit():
            return float(self.by_block[self.s.last_read[int(before)]][c]) if int(before) in self.layout.cleared else 0.0
        i = int(before.rstrip("'+-"))
        g = next(k for k, r in enumerate(self.realised) if r.values[0] == i and before in r.gadget.workspace)
        last = self.s.start[g] + self.realised[g].gadget.depth - 1
        return float(self.by_block[last][c])

    def _workspace(self, i: int, r: Realised) -> float:
        """Σ_k q M^{−2k} R_k over the branches."""
        total = 0.0
        for name in r.gadget.workspace:
            c = self.layout.coordinate[name]
            branch = [u for stage in r.gadget.stages for u in stage if name in u.writes]
            pieces = branch[0].count
            error = self._left(name)
            for k in range(1, r.gadget.depth):
                error += float(self.by_block[self.s.start[i] + k - 1][c])
                total += 4 * r.area * 1.01 * float(pieces) ** (-2 * k) * error
                error *= pieces
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
        first = _gamma(weights.first.row_counts() + 4) * hidden
        counts = weights.second.row_counts()
        second = weights.second.absolute_times(first)
        second += _gamma(counts + 4) * (weights.second.absolute_times(hidden) + np.abs(weights.b_2) + z)
        return np.where((counts > 0) | (weights.b_2 != 0), second * 1.001 + 1e-300, 0.0)


def _gamma(k: FloatArray) -> FloatArray:
    return k * U / (1 - k * U) * (1 + 1e-12)

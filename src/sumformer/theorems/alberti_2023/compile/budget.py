"""How ε is divided among the gadgets: the least size Σ cost_i(δ_i) with Σ s_i δ_i ≤ budget.

s_i is how much an error of value i moves the output. One hidden layer costs c/√δ units, a saw network k·log(1/δ), so
  δ_i = (c_i / 2μs_i)^{2/3}   or   δ_i = k_i / μs_i,
with one multiplier μ for all, found by bisection on the proved bound itself. A root near 0 carries √e of an error e:
its slope is taken where √e is half of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.errors import RefusedError
from sumformer.gadgets.root import RootShape, modulus
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.program import Program, Value

PER_LOG = 11.5  # weights of a product per factor e of accuracy: two branches of 4 units, 4 weights each, for 16
INFLATE = 1 + 2.0**-40
FLAT = 1e-3  # segments at δ = 1: a function that is nearly a line gets a share too, since its values are rounded


class Budget:
    """Errors forward, sensitivities backward, for one program and its outputs."""

    def __init__(self, program: Program, outputs: Sequence[Functional]) -> None:
        self.program, self.outputs = program, tuple(outputs)
        self.sensitivity = self._backward(1.0)
        self.used = [v for v in program.values if self.sensitivity[v.index]]
        self._arguments = {v.index: [_arrays(f) for f in v.of] for v in self.used}
        self._sizes = {v.index: [max(map(abs, program.range(f))) for f in v.of] for v in self.used if v.op == "product"}
        self._saws = [v for v in self.used if v.op == "product" or v.is_square]
        self._areas = np.array([area(program, v) for v in self._saws])
        self._functions = [v for v in self.used if v.op == "function" and not v.is_square]
        self._knots = np.array([v.shape.knots_at(1.0) for v in self._functions if v.shape is not None])

    def errors(self, local: FloatArray) -> FloatArray:
        """|computed − ideal| of every value, from what each value adds itself; ∞ where a range is left."""
        out = np.zeros(len(self.program.values))
        for v in self.used:
            out[v.index] = (self._carried(v, out) + local[v.index]) * INFLATE
        return out

    def bound(self, local: FloatArray) -> float:
        """max over outputs."""
        errors = self.errors(local)
        return max(functional_error(f, errors) for f in self.outputs)

    def split(self, allowed: float) -> FloatArray:
        """δ_i for every gadget, as large as `allowed` permits (and a hundredth more does not leave a range)."""
        low, high = -60.0, 120.0  # log2 μ
        sensitivity = self._backward(allowed)
        for _ in range(44):
            middle = (low + high) / 2
            if self.bound(1.01 * self._tolerances(2.0**middle, sensitivity)) <= 1.01 * allowed:
                high = middle
            else:
                low = middle
        found = self._tolerances(2.0**high, sensitivity)
        if not self.bound(found) <= 1.01 * allowed:
            advice = "a larger ε may do, or a smaller box, where functions are less steep"
            raise RefusedError(f"no division of {allowed:.2g} among the gadgets was found", [advice])
        return found

    def _tolerances(self, mu: float, sensitivity: FloatArray) -> FloatArray:
        """δ_i at multiplier μ."""
        out = np.zeros(len(self.program.values))
        index = [v.index for v in self._saws]
        price = mu * sensitivity[index]
        if self.program.prefer == "depth":
            delta = (8 * np.sqrt(self._areas) / (2 * price)) ** (2 / 3)
        else:
            delta = PER_LOG / price
        out[index] = np.where(
            delta < self._areas, delta, self._areas * INFLATE**3
        )  # the area: nothing but its linear part
        index = [v.index for v in self._functions]
        out[index] = (3 * np.maximum(self._knots, FLAT) / (2 * mu * sensitivity[index])) ** (2 / 3)
        return out

    def _carried(self, v: Value, errors: FloatArray) -> float:
        """What the errors of its arguments do to a value."""
        parts = [float(weights @ errors[index]) * INFLATE for index, weights in self._arguments[v.index]]
        if not parts:
            return 0.0
        if not all(map(isfinite, parts)):
            return float("inf")
        if v.op == "product":
            (a, b), (ea, eb) = self._sizes[v.index], parts
            return a * eb + b * ea + ea * eb
        if v.op == "function" and v.shape is not None:
            if parts[0] > v.pad:
                return float("inf")
            if isinstance(v.shape, RootShape):
                return modulus(v.shape.lo, parts[0])
            return v.shape.slope * parts[0] if parts[0] else 0.0
        return parts[0]

    def _backward(self, allowed: float) -> FloatArray:
        values, out = self.program.values, np.zeros(len(self.program.values))
        for f in self.outputs:
            for u, w in f.terms:
                out[u] = max(out[u], abs(w))
        for v in reversed(values):
            s = out[v.index]
            if not s:
                continue
            for f, slope in zip(v.of, _slopes(v, self.program, allowed / s), strict=True):
                for u, w in f.terms:
                    out[u] += s * max(slope, 1e-12) * abs(w)
        return out


def functional_error(f: Functional, errors: FloatArray) -> float:
    return float(sum(abs(w) * errors[v] for v, w in f.terms)) * INFLATE


def area(program: Program, v: Value) -> float:
    """A·B for a·b, A² for a²: what its linear part leaves out at most."""
    return prod(radius(program, f) for f in v.of) ** (2 if v.is_square else 1)


def _arrays(f: Functional) -> tuple[Any, FloatArray]:
    return np.array([v for v, _ in f.terms], dtype=np.int64), np.abs(np.array([w for _, w in f.terms]))


def radius(program: Program, f: Functional) -> float:
    lo, hi = program.range(f)
    return (hi - lo) / 2


def _slopes(v: Value, program: Program, allowed: float) -> list[float]:
    if v.op == "product":
        sizes = [max(map(abs, program.range(f))) for f in v.of]
        return [sizes[1], sizes[0]]
    if isinstance(v.shape, RootShape):
        return [v.shape.slope(allowed / 2)]
    if v.op == "function" and v.shape is not None:
        return [v.shape.slope]
    return [1.0] * len(v.of)

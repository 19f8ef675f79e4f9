"""(exact value ∈ [lo, hi], |computed − exact| ≤ error) on every cell, through the operations of the network.

With a ↦ a+α, |α| ≤ e_a the computed operands, first the exact operation on computed operands is compared with the exact
one, then a rounding u·|result| and an underflow `tiny` are added. Bounds are evaluated in float64 by positive formulas
without cancellation; their own rounding is covered by the factor `SAFETY` at the end of `bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations
from sumformer.certificates.checker.upward import over, times
from sumformer.certificates.checker.verification import Unproved

FLOOR = 1e-150  # an error in exact arithmetic, if there is one
FUNCTION_ULPS = 8.0  # 4 ulp assumed of torch's functions, an ulp being at most 2u relative


@dataclass(frozen=True, slots=True)
class Tracked:
    """The exact value and how far the computed one may be."""

    value: Interval
    error: Floats


class TrackedOperations:
    """The network's operations in `arithmetic`."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.a, self.exact = arithmetic, IntervalOperations()

    def rounded(self, value: Interval, error: Floats, roundings: float = 1.0) -> Tracked:
        """A value whose operands contribute `error`, after a rounding; unbounded where it might overflow."""
        size = value.magnitude + error
        error = error + roundings * self.a.u * size + (self.a.tiny if self.a.u else 0.0)
        return Tracked(value, np.where(size + error < self.a.huge, error, np.inf))

    def const(self, value: Fraction) -> Tracked:
        return Tracked(self.exact.const(value), np.asarray(self.a.constant_error(value)))

    def add(self, a: Tracked, b: Tracked) -> Tracked:
        return self.rounded(self.exact.add(a.value, b.value), a.error + b.error)

    def sub(self, a: Tracked, b: Tracked) -> Tracked:
        return self.rounded(self.exact.sub(a.value, b.value), a.error + b.error)

    def neg(self, a: Tracked) -> Tracked:
        return Tracked(self.exact.neg(a.value), a.error)

    def mul(self, a: Tracked, b: Tracked) -> Tracked:
        error = a.value.magnitude * b.error + a.error * (b.value.magnitude + b.error)
        return self.rounded(self.exact.mul(a.value, b.value), self._settle(error, a, b))

    def div(self, a: Tracked, b: Tracked) -> Tracked:
        """|(a+α)/(b+β) − a/b| = |α − (a/b)β|/|b+β|."""
        value = self.exact.div(a.value, b.value)
        least = b.value.mignitude - b.error
        if bool(np.any(b.error > 0.9 * b.value.mignitude)):
            raise Unproved("a computed denominator may vanish")
        return self.rounded(value, self._settle(over(a.error + times(value.magnitude, b.error), least), a, b))

    def power(self, v: Tracked, k: int) -> Tracked:
        """|(v+e)^k − v^k| ≤ e·Σ_{j<k} (|v|+e)^j |v|^{k−1−j}; v^k is a product of k factors, k − 1 roundings in all.

        Of at most 12 products each may underflow by `tiny`, which enters the result k-fold at most. A square is one
        product: |(v+e)(v+e') − v²| ≤ (2|v| + e)·e for |e'| ≤ e, whether it is written v² or v·v.
        """
        if k < 0:
            return self.div(self.const(Fraction(1)), self.power(v, -k))
        if k <= 1:
            return self.const(Fraction(1)) if k == 0 else v
        if k == 2:
            error = (2 * v.value.magnitude + v.error) * v.error
            return self.rounded(self.exact.power(v.value, 2), self._settle(error, v))
        value, least = self.exact.power(v.value, k), v.value.magnitude
        size = least + v.error
        with np.errstate(all="ignore"):  # ∞ · 0 is ∞ below
            error = v.error * sum((size**j * least ** (k - 1 - j) for j in range(k)), np.asarray(0.0)) * (1 + 1e-12)
        rounding = self.a.gamma(k - 1) * size**k + 16 * k * self.a.tiny * np.maximum(1.0, size) ** k
        total = self._settle(error + rounding, v)
        return Tracked(value, np.where(np.maximum(1.0, size) ** k + total < self.a.huge, total, np.inf))

    def total(self, values: list[Tracked]) -> Tracked:
        """In any order: γ_{w−1} Σ |v_c|."""
        exact = self.exact.total([v.value for v in values])
        errors = [v.error for v in values]
        size = sum((v.value.magnitude + v.error for v in values), np.asarray(0.0))
        count = len(values) - 1
        extra = self.a.gamma(count) * size + count * self.a.tiny
        error = sum(errors, np.asarray(0.0)) + extra
        return Tracked(exact, np.where(size * 2 < self.a.huge, error, np.inf))

    def norm(self, values: list[Tracked]) -> Tracked:
        """1-Lipschitz; w squares, w − 1 sums and a root: relative (w + 8)u. Squares that underflow cost √(w·tiny)."""
        exact = self.exact.norm([v.value for v in values])
        errors = self._settle(np.sqrt(sum((v.error**2 for v in values), np.asarray(0.0))), *values)
        count = len(values)
        result = self.rounded(exact, errors * (1 + 1e-12), count + FUNCTION_ULPS)
        safe = exact.magnitude + errors < np.sqrt(self.a.huge) / 2
        return Tracked(exact, np.where(safe, result.error + np.sqrt(2 * count * self.a.tiny), np.inf))

    def extremum(self, op: str, a: Tracked, b: Tracked) -> Tracked:
        return Tracked(self.exact.extremum(op, a.value, b.value), np.maximum(a.error, b.error))

    def function(self, fn: str, v: Tracked) -> Tracked:
        value, e = self.exact.function(fn, v.value), v.error
        if fn == "abs":
            return Tracked(value, e)
        lo, hi = v.value.lo, v.value.hi
        nearest = np.maximum(v.value.mignitude - e, 0.0)  # to 0, where sigmoid' and tanh' are largest
        match fn:
            case "exp":  # e^v (e^e − 1), and e^e − 1 ≤ e·e^e; or the larger of e^v and e^(v+e)
                error = np.where(e <= 700.0, value.hi * e * np.exp(np.minimum(e, 700.0)) * (1 + 1e-12), np.inf)
                most = hi + e * (1 + 1e-9)
                error = np.fmin(error, np.where(most < 700.0, np.exp(np.minimum(most, 700.0)) * (1 + 1e-12), np.inf))
            case "log":
                if bool(np.any(e > 0.9 * lo)):
                    raise Unproved("a computed argument of log may not be positive")
                error = e / (lo - e)
            case "sqrt":
                # The network takes p = max(v̂, 0), and |p − v| ≤ e as v ≥ 0: |√p − √v| = |p − v|/(√p + √v) ≤ √|p − v|.
                with np.errstate(all="ignore"):
                    roots = np.sqrt(lo) + np.sqrt(np.maximum(lo - e, 0.0))
                    steep = np.where(lo > 0, e / roots * (1 + 1e-12), np.inf)
                error = np.where(e == 0, 0.0, np.fmin(steep, np.sqrt(e) * (1 + 1e-12)))
            case "sin" | "cos":
                error = e
            case "tanh":
                error = e * (1 - np.tanh(nearest) ** 2 + 1e-12)
            case "sigmoid":
                small = np.exp(-nearest)
                error = e * (small / (1 + small) ** 2 + 1e-12)
            case _:
                raise Unproved(f"unknown function {fn}")
        error = self._settle(error, v)
        big = np.maximum(np.abs(lo), np.abs(hi)) + e < self.a.huge
        result = self.rounded(value, error, FUNCTION_ULPS)
        return Tracked(value, np.where(big, result.error, np.inf))

    def _settle(self, error: Floats, *operands: Tracked) -> Floats:
        """NaN (0·∞) means nothing is known; what is not 0 stays so, where no `tiny` is added for underflow."""
        error = np.where(np.isnan(error), np.inf, error)
        if self.a.u:
            return error
        some = sum((operand.error for operand in operands), np.asarray(0.0)) > 0
        return np.where(some, np.maximum(error, FLOOR), error)

"""The network's arithmetic as numbers: unit roundoff, least and largest normal numbers, and γ_k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Arithmetic:
    """fl(a∘b) = (a∘b)(1+δ) + η, |δ| ≤ u, |η| ≤ tiny (flush to zero allowed); beyond `huge` nothing is known.

    `exact`() has u = tiny = 0: real arithmetic, for the parts of the bound that are not rounding.
    """

    u: float
    tiny: float
    huge: float
    digits: int
    output: tuple[float, float, float] | None = None  # u, tiny, huge of the type the result is rounded to

    @staticmethod
    def named(name: str) -> Arithmetic:
        if name == "float32":
            return Arithmetic(2.0**-24, 2.0**-126, 3.4e38, 24)
        output = (2.0**-24, 2.0**-126, 3.4e38) if name == "mixed" else None
        return Arithmetic(2.0**-53, 2.0**-1022, 1.7e308, 53, output)

    @staticmethod
    def exact() -> Arithmetic:
        return Arithmetic(0.0, 0.0, math.inf, 10**6)

    def gamma(self, k: float) -> float:
        """ku/(1 − ku): k roundings in any order."""
        return k * self.u / (1 - k * self.u) if k * self.u < 0.5 else math.inf

    def constant_error(self, value: Fraction) -> float:
        """|stored − value| of a constant, exactly known: N stores it as the nearest float64, then the nearest float32.

        A constant below the normal numbers may be flushed to 0.
        """
        if not self.u:
            return 0.0
        try:
            stored = float(np.float32(float(value))) if self.digits == 24 else float(value)
        except OverflowError:
            return math.inf
        if not math.isfinite(stored):
            return math.inf
        error = float(abs(Fraction(stored) - value)) * (1 + 1e-15)
        return error if stored == 0 == value or abs(stored) >= self.tiny else error + self.tiny

    def count_roundings(self, n: int) -> int:
        """Of the number of tokens, which N adds up in float64, exactly, and then rounds to this arithmetic."""
        return 0 if n <= 2**self.digits else 1

    def rounded_out(self, error: float, size: float) -> float:
        """≥ |output − value| of a value of at most this size, computed with at most this error."""
        if math.isnan(error + size):
            return math.inf
        if self.output is None:
            return error
        u, tiny, huge = self.output
        return error + u * (size + error) + tiny if size + error < huge else math.inf

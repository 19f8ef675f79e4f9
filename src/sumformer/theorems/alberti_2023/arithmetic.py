"""How a network computes: unit roundoffs inside and outside, underflow threshold, groups of its summation tree."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arithmetic:
    """`u` inside, `u_out` of a last rounding to a narrower output, `tiny` the least normal number."""

    name: str
    u: float
    u_out: float
    tiny: float
    dtype: str
    group: int


ARITHMETICS = {
    "float64": Arithmetic("float64", 2.0**-53, 0.0, 2.0**-1022, "float64", 1024),
    "float32": Arithmetic("float32", 2.0**-24, 0.0, 2.0**-126, "float32", 32),
    "mixed": Arithmetic("mixed", 2.0**-53, 2.0**-24, 2.0**-1022, "float64", 1024),
}

"""How a network computes: unit roundoffs inside and outside, underflow threshold, groups of its summation tree."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.errors import RefusedError
from sumformer.targets.domain import Box


@dataclass(frozen=True)
class Arithmetic:
    """`u` inside, `u_out` of a last rounding to a narrower output; normal numbers lie between `tiny` and `huge`.

    `tiny_out` and `huge_out` are those of the output's dtype. Sums of parts are added to each other `merges` deep.
    """

    name: str
    u: float
    u_out: float
    tiny: float
    huge: float
    tiny_out: float
    huge_out: float
    dtype: str
    group: int
    merges: int = 0


_WIDE = (2.0**-1022, 1.7e308)
_NARROW = (2.0**-126, 3.4e38)

ARITHMETICS = {
    "float64": Arithmetic("float64", 2.0**-53, 0.0, *_WIDE, *_WIDE, "float64", 1024),
    "float32": Arithmetic("float32", 2.0**-24, 0.0, *_NARROW, *_NARROW, "float32", 32),
    "mixed": Arithmetic("mixed", 2.0**-53, 2.0**-24, *_WIDE, *_NARROW, "float64", 1024),
}


def refuse_box(box: Box, arithmetic: Arithmetic) -> None:
    """Refuse a box whose edges, or the reciprocal of whose radius, are no normal numbers of the arithmetic."""
    most, least = arithmetic.huge_out / 2, 4 * max(arithmetic.tiny, arithmetic.tiny_out)
    if max(_sizes(box)) > most or min(box.radius) < least:
        raise RefusedError(
            f"the box {box} is too large or too small for {arithmetic.name} arithmetic",
            [f"edges up to {most:.1e} and radii from {least:.1e} are taken: rescale the target"],
        )
    _refuse_tokens(box, arithmetic)


def refuse_overflow(box: Box, arithmetic: Arithmetic) -> None:
    """Refuse a box whose edges, or the reciprocal of whose radius, are beyond the numbers of the arithmetic."""
    if max(_sizes(box)) > arithmetic.huge_out or 1 / min(box.radius) > arithmetic.huge:
        reason = f"edges up to {arithmetic.huge_out:.1e} and radii from {1 / arithmetic.huge:.1e} are numbers"
        reason = f"{reason}: rescale the target"
        raise RefusedError(f"the box {box} is too large or too small for {arithmetic.name} arithmetic", [reason])
    _refuse_tokens(box, arithmetic)


def _refuse_tokens(box: Box, arithmetic: Arithmetic) -> None:
    """Refuse a box without tokens, or near 0: where a device takes subnormal ones for 0, that must be a rounding."""
    kind = np.float32 if arithmetic.huge_out == _NARROW[1] else np.float64
    for low, high in zip(box.lower, box.upper, strict=True):
        token = kind(float(low))
        if Fraction(float(token)) < low:
            token = np.nextafter(token, kind(np.inf))
        if Fraction(float(token)) > high:
            raise RefusedError(f"the box {box} holds no {kind.__name__} number", ["take a wider box, or float64"])
    least = 4 * arithmetic.tiny_out / arithmetic.u
    if min(_sizes(box)) < least:
        raise RefusedError(
            f"the box {box} is so near 0 that tokens of {arithmetic.name} arithmetic lose their digits there",
            [f"edges from {least:.1e} are taken in every coordinate: rescale the target"],
        )


def _sizes(box: Box) -> list[Fraction]:
    return [max(abs(a), abs(b)) for a, b in zip(box.lower, box.upper, strict=True)]

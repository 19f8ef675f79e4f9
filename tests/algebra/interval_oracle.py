"""High-precision truth for the interval tests: python-flint balls, boxes, and points inside them."""

from __future__ import annotations

import flint
import numpy as np
from flint import acb, arb
from hypothesis import strategies as st

flint.ctx.prec = 400

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e300, -1e300]
SPECIAL += [1.7976931348623157e308, -1.7976931348623157e308, np.pi, -np.pi, np.pi / 2, 709.78, -745.13, 2.0**30]
reals = st.one_of(
    st.floats(-10, 10),
    st.floats(-800, 800),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(SPECIAL),
)
moderate = st.one_of(
    st.floats(-6, 6), st.floats(-6, 6), st.sampled_from([0.0, -0.0, 1.0, 5e-324, -5e-324, 800.0, -800.0])
)
steps = st.one_of(st.just(0.0), st.floats(0, 8), st.floats(0, 1e-12))


@st.composite
def boxes(draw, ends=reals):
    """(lo, hi): wide, narrow or one point."""
    a = draw(ends)
    b = draw(st.one_of(ends, st.just(a), steps.map(lambda step: a + step)))
    return (min(a, b), max(a, b))


def points(lo: float, hi: float, t: float) -> list[float]:
    """The ends and one point inside."""
    return [lo, hi, float(np.clip(lo * (1 - t) + hi * t, lo, hi))]


def escapes(lo: float, hi: float, truth: arb) -> bool:
    """Whether the ball `truth` certainly lies outside [lo, hi]."""
    return bool(truth < arb(float(lo))) or bool(truth > arb(float(hi)))


def inside(value, truth: acb | arb) -> bool:
    """Whether a (one-entry) interval or rectangle encloses the truth."""
    if isinstance(truth, arb):
        return not escapes(value.lo.item(), value.hi.item(), truth)
    parts = ((value.re, truth.real), (value.im, truth.imag))
    return not any(escapes(part.lo.item(), part.hi.item(), exact) for part, exact in parts)


FUNCTIONS = {
    "exp": lambda z: z.exp(),
    "log": lambda z: z.log(),
    "sqrt": lambda z: z.sqrt(),
    "sin": lambda z: z.sin(),
    "cos": lambda z: z.cos(),
    "tanh": lambda z: z.tanh(),
    "sigmoid": lambda z: 1 / (1 + (-z).exp()),
}

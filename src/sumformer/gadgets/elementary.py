"""exp, log, √, 1/t, tanh, sigmoid, sin, cos: the expressions that `function` turns into one hidden layer."""

from __future__ import annotations

from collections.abc import Mapping

from sumformer.gadgets.chebyshev import X
from sumformer.gadgets.function import function
from sumformer.gadgets.units import Gadget
from sumformer.targets import Node, Unary

EXP, LOG, SQRT, TANH, SIGMOID = (
    Unary("exp", X),
    Unary("log", X),
    Unary("sqrt", X),
    Unary("tanh", X),
    Unary("sigmoid", X),
)
RECIPROCAL = 1 / X
ELEMENTARY: dict[str, Node] = {
    "exp": EXP,
    "log": LOG,
    "sqrt": SQRT,
    "tanh": TANH,
    "sigmoid": SIGMOID,
    "reciprocal": RECIPROCAL,
    "sin": Unary("sin", X),
    "cos": Unary("cos", X),
}


def elementary(
    name: str, reads: Mapping[str, float], offset: float, lo: float, hi: float, place: str, tolerance: float
) -> Gadget:
    """name(t) within the tolerance, t = ⟨reads, z⟩ + offset ∈ [lo, hi]."""
    return function(reads, offset, lo, hi, {place: (ELEMENTARY[name], tolerance)})

"""exp, log, √, 1/t, tanh, sigmoid, sin, cos, to a tolerance on a range: one hidden layer, or products of saws."""

from __future__ import annotations

from sumformer.errors import InputError
from sumformer.gadgets.chebyshev import X
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.realisation import Realisation, realise
from sumformer.gadgets.saw import Prefer
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
    name: str,
    t: Reading,
    place: str,
    tolerance: float,
    prefer: Prefer = "depth",
    realisation: Realisation | None = None,
) -> Gadget:
    """name(t) within the tolerance, deep or shallow as `realise` chooses."""
    if name not in ELEMENTARY:
        raise InputError(f"elementary: expected one of {', '.join(ELEMENTARY)}, got {name!r}")
    return realise(ELEMENTARY[name], t, place, tolerance, prefer, realisation)

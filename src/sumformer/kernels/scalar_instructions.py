"""v_i = f_i(v_left, v_right): a formula as a list of instructions on numbers, run on tensors of equal shape.

The codes: + − × ÷, negation, exp, log, sqrt, sin, cos, sigmoid, abs, min, max; a constant, whose `left` is its place.
sqrt takes what is below 0 for 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CODES = ("add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "sin", "cos", "sigmoid", "abs", "minimum", "maximum")
CONSTANT = len(CODES)
_ONE_ARGUMENT = range(CODES.index("neg"), CODES.index("minimum"))


def run(
    values: list[Tensor], constants: Tensor, code: Sequence[int], left: Sequence[int], right: Sequence[int]
) -> list[Tensor]:
    """The values, and behind them those of the instructions."""
    values = list(values)
    for instruction, a, b in zip(code, left, right, strict=True):
        if instruction == CONSTANT:
            values.append(constants[a].expand_as(values[0]))
        elif instruction in _ONE_ARGUMENT:
            value = values[a].clamp(min=0) if CODES[instruction] == "sqrt" else values[a]
            values.append(getattr(torch, CODES[instruction])(value))
        else:
            values.append(getattr(torch, CODES[instruction])(values[a], values[b]))
    return values

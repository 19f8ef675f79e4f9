"""Programs on tokens, flattened to instructions on numbers: (code, left, right), one value each, for the GPU kernels.

The places of earlier values are the arguments; a constant's `left` is its place among the constants. The order of
operations is that of `Program`: what is counted for one holds for the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sumformer.errors import NotSupportedError
from sumformer.nn.program import Program

_BINARY = {"add": 0, "sub": 1, "mul": 2, "div": 3}
_NEG, _SQRT, _CONSTANT = 4, 7, 14
_UNARY = {"exp": 5, "log": 6, "sqrt": _SQRT, "sin": 8, "cos": 9, "sigmoid": 10, "abs": 11}
_EXTREMA = {"min": 12, "max": 13}
LONGEST = 256  # instructions; beyond, a kernel would take longer to compile than to save time


class ScalarProgram:
    """Grows as programs are added; `inputs` values stand before the first instruction."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.code: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.constants: list[float] = []

    def emit(self, code: int, left: int, right: int = 0) -> int:
        """One more instruction; the place of its value."""
        if len(self.code) >= LONGEST:
            raise NotSupportedError(f"ScalarProgram: more than {LONGEST} instructions")
        self.code.append(code)
        self.left.append(left)
        self.right.append(right)
        return self.inputs + len(self.code) - 1

    def constant(self, value: float) -> int:
        self.constants.append(value)
        return self.emit(_CONSTANT, len(self.constants) - 1)

    def total(self, places: Sequence[int]) -> int:
        out = places[0]
        for place in places[1:]:
            out = self.emit(_BINARY["add"], out, place)
        return out

    def add(self, program: Program, token: Sequence[int], reduced: Sequence[Sequence[int]]) -> list[int]:
        """The places of the program's result; `token` and `reduced` are the places of its arguments."""
        values: list[list[int]] = []
        for name, places, data in program.instructions:
            values.append(self._instruction(name, [values[i] for i in places], data, token, reduced))
        return values[-1]

    def _instruction(
        self,
        name: str,
        args: list[list[int]],
        data: tuple[object, ...],
        token: Sequence[int],
        reduced: Sequence[Sequence[int]],
    ) -> list[int]:
        if name in ("x", "y"):
            return list(token)
        if name == "reduced":
            return list(reduced[int(str(data[0]))])
        if name == "const":
            return [self.constant(float(str(data[0])))]
        if name in _BINARY:
            return [self.emit(_BINARY[name], a, b) for a, b in _pairs(*args)]
        if name == "extremum":
            return [self.emit(_EXTREMA[str(data[0])], a, b) for a, b in _pairs(*args)]
        if name == "neg":
            return [self.emit(_NEG, a) for a in args[0]]
        if name == "power":
            return [self._power(a, int(str(data[0]))) for a in args[0]]
        if name == "unary":
            if data[0] not in _UNARY:
                raise NotSupportedError(f"ScalarProgram: no instruction for {data[0]}")
            return [self.emit(_UNARY[str(data[0])], a) for a in args[0]]
        if name == "slice":
            return args[0][int(str(data[0])) : int(str(data[1]))]
        if name == "cat":
            return [place for arg in args for place in arg]
        if name == "total":
            return [self.total(args[0])]
        second = args[-1]  # dot(a, b), norm2(v) = dot(v, v), norm(v) = √norm2(v)
        out = self.total([self.emit(_BINARY["mul"], a, b) for a, b in _pairs(args[0], second)])
        return [self.emit(_SQRT, out) if name == "norm" else out]

    def _power(self, v: int, k: int) -> int:
        """As `NetworkOperations.power` multiplies."""
        if k < 0:
            return self.emit(_BINARY["div"], self.constant(1.0), self._power(v, -k))
        result: int | None = None
        while k:
            if k & 1:
                result = v if result is None else self.emit(_BINARY["mul"], result, v)
            k >>= 1
            if k:
                v = self.emit(_BINARY["mul"], v, v)
        return self.constant(1.0) if result is None else result


def _pairs(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Width 1 broadcasts."""
    width = max(len(a), len(b))
    a, b = (v * width if len(v) == 1 else v for v in (a, b))
    return list(zip(a, b, strict=True))

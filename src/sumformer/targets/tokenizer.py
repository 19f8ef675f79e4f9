"""source ↦ lexemes: numbers (exact rationals), names and signs, each with its position; literals are bounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sumformer.errors import TargetError

MAX_DIGITS = 1300  # of a literal: every constant of `tree.MAX_BITS` bits can be written
MAX_DECIMAL_EXPONENT = 400
_SHOWN = 200  # characters of a source that an error message repeats

_PATTERN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>\*\*|[-+*/()\[\],:])"
)
_INSTEAD = {"^": "**", "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "²": "**2", "³": "**3", "%": "/", ";": ","}
_INSTEAD |= {"|": "abs(…)", "@": "dot(a, b)", ">": "sigmoid((a - b)/0.1)", "<": "sigmoid((b - a)/0.1)"}
_INSTEAD |= {"{": "(", "}": ")", "√": "sqrt(…)", "‖": "norm(…)", "∑": "sum(…)", "Σ": "sum(…)"}
_WHY = {
    ".": "functions are written without a prefix, as exp(x) and mean(y)",
    "=": "a formula is one value, as x - mean(y), and functions have no named arguments",
    "\\": "a formula is written as in Python, not in LaTeX, as mean(exp(-norm2(x - y)))",
}


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A piece of the source; `value` is the exact value of a number."""

    kind: Literal["number", "name", "sign", "end"]
    text: str
    position: int
    value: Fraction | None = None


def located(reason: str, source: str, position: int) -> TargetError:
    """The error `reason` at `position`, with the source under it, or what is around when the source is long."""
    if len(source) <= _SHOWN:
        return TargetError(reason, source, position)
    around = source[max(0, position - 20) : position + 20]
    return TargetError(f"{reason} (at character {position}, in '…{around}…')", None, position)


def tokenize(source: str) -> list[Lexeme]:
    """All lexemes of `source`, the last of kind "end"."""
    lexemes, position = [], 0
    while position < len(source):
        match = _PATTERN.match(source, position)
        if match is None:
            raise located(_unexpected(source[position]), source, position)
        text = match.group()
        if match.lastgroup == "number":
            lexemes.append(Lexeme("number", text, position, _number(text, source, position)))
        elif match.lastgroup == "name":
            lexemes.append(Lexeme("name", text, position))
        elif match.lastgroup == "sign":
            lexemes.append(Lexeme("sign", text, position))
        position = match.end()
    lexemes.append(Lexeme("end", "", len(source)))
    return lexemes


def _unexpected(character: str) -> str:
    shown = "'\\'" if character == "\\" else repr(character)
    hint = _WHY.get(character) or (f"did you mean '{_INSTEAD[character]}'?" if character in _INSTEAD else "")
    return f"unexpected character {shown}" + (f": {hint}" if hint else "")


def _number(text: str, source: str, position: int) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS:
        raise located(f"expected a number of at most {MAX_DIGITS} digits, got {len(mantissa)}", source, position)
    if len(exponent) > 8 or abs(int(exponent or "0")) > MAX_DECIMAL_EXPONENT:
        limit = f"from -{MAX_DECIMAL_EXPONENT} to {MAX_DECIMAL_EXPONENT}"
        raise located(f"expected a decimal exponent {limit}, got {exponent[:12]}", source, position)
    whole, _, decimals = mantissa.partition(".")
    return Fraction(int(whole + decimals)) * Fraction(10) ** (int(exponent or "0") - len(decimals))

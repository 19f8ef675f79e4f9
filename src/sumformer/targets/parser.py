"""source ↦ tree: an operator-precedence parser with an explicit stack. No eval, no recursion, bounded length and depth.

expression := value (('+' | '-' | '*' | '/') value)*            '*' and '/' bind tighter; left-associative
value      := ('+' | '-')* primary ('[' index ']')* ['**' exponent]     a sign binds looser than '**'
primary    := number | 'x' | 'y' | function '(' expression (',' expression)* ')' | '(' expression ')'
index      := integer | [integer] ':' [integer];   exponent := number ['/' number], signed or in parentheses
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from sumformer.errors import InputError, TargetError
from sumformer.targets.arithmetic import combine, negate, raise_to, take, take_one
from sumformer.targets.calls import build_call, explain_name, is_function
from sumformer.targets.node import Node
from sumformer.targets.tokenizer import Lexeme, located, tokenize
from sumformer.targets.tree import Const, Token

MAX_SOURCE = 10_000  # characters
MAX_NODES = 5_000

_BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "sign": 3}
_SURELY_REDUCE = ("sum", "mean", "sum_others", "mean_others")


def parse(source: str, d: int, *, free_y: bool = False, positions: bool = False) -> Node:
    """The tree of `source` for tokens of width d; a `y` outside every reduction only if `free_y`.

    With `positions`, tokens have width d + 1: `x` is their first d coordinates and `i` the last, so for `y` and `j`.
    """
    if not isinstance(source, str):
        raise InputError(f"parse: expected the source as a string, got {type(source).__name__}")
    if len(source) > MAX_SOURCE:
        raise TargetError(f"expected at most {MAX_SOURCE} characters, got {len(source)}")
    shown = "".join(" " if c.isspace() else c for c in source)  # one line, so that the error's pointer fits
    parser = _Parser(shown, positioned(d) if positions else {"x": Token("x", d), "y": Token("y", d)})
    node = parser.expression()
    try:
        check_target_tree(node, free_y=free_y)
    except TargetError as error:
        raise located(error.reason, shown, parser.free_y or 0) from None
    return node


def positioned(d: int) -> dict[str, Node]:
    """x, i, y, j as parts of tokens (x, i) and (y, j) of width d + 1."""
    x, y = Token("x", d + 1), Token("y", d + 1)
    return {"x": take(x, 0, d), "i": take_one(x, d), "y": take(y, 0, d), "j": take_one(y, d)}


def check_target_tree(node: Node, *, free_y: bool = False) -> None:
    """Refuse a tree that is no target: a free y, or too many nodes."""
    if "y" in node.free and not free_y:
        hint = "did you mean sum(…) or mean(…) around it? (total(…) sums over coordinates, not over tokens)"
        raise TargetError(f"y is free: it only has a meaning inside a reduction; {hint}")
    if node.size > MAX_NODES:
        raise TargetError(f"expected at most {MAX_NODES} nodes, got {node.size}")


@dataclass(slots=True)
class _Pending:
    """An operator, a sign, or an open bracket that waits for its right end; `base` operands lie below a bracket."""

    kind: str
    lexeme: Lexeme
    base: int = 0
    function: str = ""


class _Parser:
    def __init__(self, source: str, tokens: Mapping[str, Node]) -> None:
        self.source, self.lexemes, self.next = source, tokenize(source), 0
        self.tokens = tokens
        self.operands: list[Node] = []
        self.pending: list[_Pending] = []
        self.free_y: int | None = None  # where a y stands that no reduction encloses (or max(…), min(…) may not)

    def expression(self) -> Node:
        """Alternate between a value and what may follow one, until the end of the source."""
        while True:
            self.value()
            if not self.after_value():
                return self.operands[0]

    def value(self) -> None:
        """Signs and opening brackets, then a number or a token."""
        while True:
            lexeme = self.advance()
            if lexeme.text == "-":
                self.pending.append(_Pending("sign", lexeme))
            elif lexeme.text == "(":
                self.pending.append(_Pending("(", lexeme, len(self.operands)))
            elif lexeme.kind == "name" and lexeme.text not in self.tokens:
                self.open_call(lexeme)
            elif lexeme.kind == "name":
                if lexeme.text in ("y", "j") and not any(p.function in _SURELY_REDUCE for p in self.pending):
                    self.free_y = lexeme.position if self.free_y is None else self.free_y
                return self.operands.append(self.tokens[lexeme.text])
            elif lexeme.kind == "number":
                return self.operands.append(self.build(lexeme, Const, lexeme.value))
            elif lexeme.text != "+":
                joined = " (coordinates are put together by cat(a, b))" if lexeme.text == "[" else ""
                self.fail(f"a number, x, y, a function or '('{joined}", lexeme)

    def open_call(self, name: Lexeme) -> None:
        if not is_function(name.text):
            raise located(explain_name(name.text), self.source, name.position)
        opening = self.advance()
        if opening.text != "(":
            self.fail(f"'(' after {name.text}", opening)
        self.pending.append(_Pending("(", name, len(self.operands), name.text))

    def after_value(self) -> bool:
        """Indices, a power, closing brackets; then True if another value must follow, False at the end."""
        powered = False
        while True:
            lexeme = self.advance()
            match lexeme.text:
                case "[" if not powered:
                    self.index(lexeme)
                case "**" if not powered:
                    exponent = self.exponent()
                    self.operands.append(self.build(lexeme, raise_to, self.operands.pop(), exponent))
                    powered = True
                case "**":
                    self.fail("one exponent (write (a**2)**3 for a power of a power)", lexeme)
                case "+" | "-" | "*" | "/":
                    self.settle(_BINDING[lexeme.text])
                    self.pending.append(_Pending(lexeme.text, lexeme))
                    return True
                case ",":
                    self.settle(0)
                    if not self.pending or not self.pending[-1].function:
                        end = "an operator or ')'" if self.pending else "an operator or the end"
                        self.fail(f"{end} (coordinates are put together by cat(a, b))", lexeme)
                    return True
                case ")":
                    self.close(lexeme)
                    powered = False
                case "" if lexeme.kind == "end":
                    self.settle(0)
                    if self.pending:
                        opening = self.pending[-1].lexeme
                        raise located("expected ')': this bracket is never closed", self.source, opening.position)
                    return False
                case _:
                    times = " (a product is written with *)" if lexeme.kind != "sign" or lexeme.text == "(" else ""
                    self.fail(f"an operator, ',' , ')' or the end{times}", lexeme)

    def settle(self, binding: int) -> None:
        """Build the waiting operators that bind at least as tightly as `binding`, down to the last open bracket."""
        while self.pending and self.pending[-1].kind != "(" and _BINDING[self.pending[-1].kind] >= binding:
            waiting, right = self.pending.pop(), self.operands.pop()
            if waiting.kind == "sign":
                self.operands.append(self.build(waiting.lexeme, negate, right))
            else:
                left = self.operands.pop()
                self.operands.append(self.build(waiting.lexeme, combine, waiting.kind, left, right))

    def close(self, lexeme: Lexeme) -> None:
        self.settle(0)
        if not self.pending:
            self.fail("an operator or the end (no bracket is open)", lexeme)
        opening = self.pending.pop()
        if opening.function:
            arguments = self.operands[opening.base :]
            del self.operands[opening.base :]
            self.operands.append(self.build(opening.lexeme, build_call, opening.function, arguments))

    def index(self, bracket: Lexeme) -> None:
        """[i] or [i:j], the opening bracket already read."""
        start = self.integer() if self.peek().text not in (":", "]") else None
        cut: tuple[Any, ...] = (take_one, self.operands.pop(), start)
        if self.peek().text == ":":
            self.advance()
            cut = take, cut[1], start, self.integer() if self.peek().text != "]" else None
        elif start is None:
            self.fail("a coordinate, an integer", self.peek())
        if self.peek().text != "]":
            self.fail("']'", self.peek())
        self.advance()
        self.operands.append(self.build(bracket, *cut))

    def exponent(self) -> int | Fraction:
        """A literal, signed or in parentheses, where it may be a quotient."""
        depth = 0
        while self.peek().text == "(":
            self.advance()
            depth += 1
        value = self.number()
        if depth and self.peek().text == "/":
            slash = self.advance()
            below = self.number()
            if not below:
                self.fail("a number other than 0 under the exponent", slash)
            value /= below
        for _ in range(depth):
            if self.peek().text != ")":
                self.fail("')' after the exponent, a number: a**b is exp(b*log(a))", self.peek())
            self.advance()
        return int(value) if value.denominator == 1 and abs(value) < 10**9 else value

    def number(self) -> Fraction:
        """A literal exponent."""
        sign = 1
        while self.peek().text in ("+", "-"):
            sign = -sign if self.advance().text == "-" else sign
        lexeme = self.advance()
        if lexeme.value is None:
            self.fail("a number as exponent (a**b is exp(b*log(a)))", lexeme)
        return sign * lexeme.value

    def integer(self) -> int:
        sign = 1
        while self.peek().text in ("+", "-"):
            sign = -sign if self.advance().text == "-" else sign
        lexeme = self.advance()
        if lexeme.kind != "number" or not lexeme.text.isdigit() or len(lexeme.text) > 9:
            self.fail("an integer", lexeme)
        return sign * int(lexeme.text)

    def peek(self) -> Lexeme:
        return self.lexemes[self.next]

    def advance(self) -> Lexeme:
        lexeme = self.lexemes[self.next]
        self.next = min(self.next + 1, len(self.lexemes) - 1)
        return lexeme

    def build(self, lexeme: Lexeme, make: Callable[..., Node], *arguments: Any) -> Node:
        """`make(*arguments)`, its errors pointing at `lexeme`."""
        try:
            return make(*arguments)
        except TargetError as error:
            raise located(error.reason, self.source, lexeme.position) from None

    def fail(self, expected: str, lexeme: Lexeme) -> NoReturn:
        if not self.source.strip():
            raise TargetError(f"the formula is empty: expected {expected}, as in x - mean(y)", None, 0)
        came = f"'{lexeme.text}'" if lexeme.kind != "end" else "the end of the formula"
        raise located(f"expected {expected}, got {came}", self.source, lexeme.position)

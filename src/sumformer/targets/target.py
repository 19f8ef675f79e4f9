"""f: 𝒳ⁿ → ℝ^{n×width}, the target: its tree, its box 𝒳 ⊂ ℝ^d and its numbers of tokens n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from sumformer.errors import DtypeError, InputError, ShapeError, TargetError
from sumformer.targets.domain import Box, Pairs, Tokens
from sumformer.targets.functions import from_lambda
from sumformer.targets.homogeneity import require_cancelling, without_counts
from sumformer.targets.node import MAX_WIDTH, Node, Scalar
from sumformer.targets.opaque import OpaqueTarget, opaque_target
from sumformer.targets.parser import MAX_SOURCE, check_target_tree, parse, positioned
from sumformer.targets.positions import check_positions, with_position, with_positions, without_position
from sumformer.targets.printing import to_source
from sumformer.targets.tree import Token
from sumformer.targets.walk import normalise, postorder, reductions

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """f(X)_i = e(x_i, {x_j}) on box^n for the n in `tokens`; `target(…)` builds one.

    `positioned`: the last coordinate of token i is its position i ∈ {1, …, n}, so that f is equivariant in tokens
    (x_i, i) and any function of the sequence of the x_i; it is appended to inputs of width d − 1.
    """

    expression: Node
    d: int
    box: Box
    tokens: Tokens
    positioned: bool = False

    def __post_init__(self) -> None:
        check_target_tree(self.expression)
        for token in (p for p in postorder(self.expression) if isinstance(p, Token) and p.d != self.d):
            raise TargetError(f"the expression is about tokens of width {token.d}, but d = {self.d}")
        if self.box.d != self.d:
            raise InputError(f"target: the box has {self.box.d} coordinates, but d = {self.d}")
        if self.positioned:
            check_positions(self.box, self.tokens)
        if self.tokens.symbolic:
            require_cancelling(self.expression)
        if self.tokens.minimum < self.least_tokens:
            raise InputError(f"target: sum_others and mean_others need n ≥ 2, got tokens {self.tokens}")

    @property
    def least_tokens(self) -> int:
        """2 where the own token is left out of a reduction, else 1."""
        return 2 if any(part.kind.endswith("_others") for part in reductions(self.expression)) else 1

    @property
    def source(self) -> str:
        """The canonical source: it parses back to the same tree."""
        return to_source(self.expression)

    @property
    def as_written(self) -> str:
        """The source with the positions called i and j, where there are any."""
        if not self.positioned:
            return self.source
        return to_source(self.expression, {part: name for name, part in positioned(self.d - 1).items()})

    @property
    def width(self) -> int:
        return self.expression.width

    @property
    def input_box(self) -> Box:
        """Where the tokens that are given lie: without their position."""
        return without_position(self.box) if self.positioned else self.box

    @property
    def countless(self) -> Node:
        """The expression in which n does not occur, for tokens "any"; else the expression itself."""
        return without_counts(self.expression) if self.tokens.symbolic else self.expression

    def __call__(
        self,
        X: Tensor,
        *,
        sources: Tensor | None = None,
        weights: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """f(X), shape (batch, n, width), for X of shape (batch, n, d); the keywords as in `evaluate_tensor`."""
        from sumformer.targets.torch_evaluation import evaluate_tensor  # a parser's user need not load torch

        if self.positioned and X.dim() == 3 and X.shape[-1] == self.d - 1:
            X = with_positions(X, attention_mask)
        if X.dim() != 3 or X.shape[-1] != self.d:
            raise ShapeError("target", f"X of shape (batch, n, {self.d})", X.shape)
        if not X.is_floating_point():
            raise DtypeError("target", "X of a floating-point dtype", X.dtype)
        if weights is None:  # with weights, Σ_j w_j tokens are meant: a measure, not a list
            self._check_count((X if sources is None else sources).shape[1], attention_mask)
        return evaluate_tensor(self.expression, X, sources=sources, weights=weights, attention_mask=attention_mask)

    def _check_count(self, n: int, attention_mask: Tensor | None) -> None:
        counts = {n} if attention_mask is None else {int(k) for k in attention_mask.bool().sum(-1).flatten().tolist()}
        wrong = sorted(k for k in counts if not self.tokens.allows(k))
        if wrong:
            allowed = f"{self.tokens.minimum} ≤ n ≤ {self.tokens.maximum}"
            raise InputError(f"target: expected {allowed} tokens, got n = {wrong[0]}")

    def __repr__(self) -> str:
        n = str(self.tokens.minimum) if self.tokens.exact else "n"
        box = self.input_box
        kind = f"ℝ^{{{n}×{box.d}}} → ℝ^{{{n}×{self.width}}}"
        place = f", i and j from 1 to {n}" if self.positioned else ""
        return f'Target("{self.as_written}", {box.formula()}, {self.tokens.formula()}, {kind}{place})'

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.source, self.d, self.box, self.tokens, self.positioned)


@overload
def target(
    expression: str | Node | Callable[[Node, Node], Scalar],
    *,
    n: str | int | Tokens = "any",
    d: int = 1,
    box: str | Box | Pairs | None = None,
    positions: bool = False,
    lipschitz: None = None,
) -> Target: ...


@overload
def target(
    expression: Callable[[Tensor], Tensor],
    *,
    n: str | int | Tokens,
    d: int = 1,
    box: str | Box | Pairs | None = None,
    lipschitz: float,
) -> OpaqueTarget: ...


def target(
    expression: Any,
    *,
    n: str | int | Tokens = "any",
    d: int = 1,
    box: str | Box | Pairs | None = None,
    positions: bool = False,
    lipschitz: float | None = None,
) -> Target | OpaqueTarget:
    """The target of a source text, a function of (x, y) that builds a tree, or a tree.

    n: "any", 3, "3", "..1000"; box: "-1:1", "0:1,-2:2", (-1, 1) or a `Box`, by default [0,1]^d. With `positions` a text
    may use the places i (own) and j (the other's), 1 to n, and n is one number. With `lipschitz`, the expression is any
    function of tensors (batch, n, d): it is tested, and its constant in the sup norm is an assumption.
    """
    if not isinstance(d, int) or isinstance(d, bool) or not 1 <= d <= MAX_WIDTH:
        raise InputError(f"target: expected a token width d from 1 to {MAX_WIDTH}, got {d!r}")
    if not (box is None or isinstance(box, str | Box)):
        box = Box.of_pairs(box, d)
    if not isinstance(positions, bool):
        raise InputError(f"target: expected positions True or False, got {positions!r}")
    domain = Box.unit(d) if box is None else Box.parse(box, d) if isinstance(box, str) else box
    tokens = n if isinstance(n, Tokens) else Tokens.parse(n)
    if lipschitz is not None:
        if isinstance(expression, str | Node) or not callable(expression):
            raise InputError("target: lipschitz=… is for a Python function of tensors; a formula's is computed")
        if positions:
            raise InputError("target: positions=True needs a formula: a function of tensors is taken as equivariant")
        return opaque_target(expression, tokens, d, domain, lipschitz)
    if isinstance(expression, str):
        tree = parse(expression, d, positions=positions)
    elif positions:
        raise InputError("target: positions=True needs source text, in which i and j have a meaning")
    elif isinstance(expression, Node):
        tree = normalise(expression)
    elif callable(expression):
        tree = from_lambda(expression, d)
    else:
        raise InputError(f"target: expected source, a function of (x, y) or a tree; got {type(expression).__name__}")
    check_target_tree(tree)
    if len(to_source(tree)) > MAX_SOURCE:
        raise TargetError(f"expected a canonical source of at most {MAX_SOURCE} characters, got {len(to_source(tree))}")
    others = any(part.kind.endswith("_others") for part in reductions(tree))
    tokens = tokens.at_least(2) if others else tokens
    if positions:
        return Target(tree, d + 1, with_position(domain, tokens), tokens, positioned=True)
    return Target(tree, d, domain, tokens)


def _restore(source: str, d: int, box: Box, tokens: Tokens, positioned: bool) -> Target:
    return Target(parse(source, d), d, box, tokens, positioned)

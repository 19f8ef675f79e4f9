"""f(X)_i = e(x_i, ⊕_j e'(x_i, x_j)) on tensors: values and gradients; O(n) where x_i and x_j do not meet.

A reduction whose body uses the own token is evaluated for a chunk of queries at a time: no buffer exceeds `budget`
elements times what one query needs. Under autograd each chunk is computed again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.node import Node
from sumformer.targets.tree import ExtremumOp, Function, Reduce, Token
from sumformer.targets.walk import postorder, reductions

BUDGET = 2**22  # elements of one intermediate value
_NARROW = 16  # up to this width, adding coordinates one by one beats a reduction over a short last dimension

_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "abs": torch.abs,
}


class TorchOperations:
    """The arithmetic of floating-point tensors `(…, width)`; leading dimensions broadcast."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device

    def const(self, value: Fraction) -> Tensor:
        try:
            rounded = float(value)
        except OverflowError:  # beyond float64, as IEEE arithmetic has it
            rounded = float("inf") if value > 0 else float("-inf")
        return torch.tensor([rounded], dtype=torch.float64, device=self.device).to(self.dtype)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        return a - b

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b

    def div(self, a: Tensor, b: Tensor) -> Tensor:
        return a / b

    def neg(self, v: Tensor) -> Tensor:
        return -v

    def power(self, v: Tensor, k: int) -> Tensor:
        return v.pow(k)

    def unary(self, fn: Function, v: Tensor) -> Tensor:
        return _FUNCTIONS[fn](v)

    def extremum(self, op: ExtremumOp, a: Tensor, b: Tensor) -> Tensor:
        return torch.minimum(a, b) if op == "min" else torch.maximum(a, b)

    def cat(self, values: Sequence[Tensor]) -> Tensor:
        leading = torch.broadcast_shapes(*(v.shape[:-1] for v in values))  # type: ignore[no-untyped-call]
        return torch.cat([v.expand(*leading, v.shape[-1]) for v in values], dim=-1)

    def slice(self, v: Tensor, start: int, stop: int) -> Tensor:
        return v[..., start:stop]

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        return self.total(a * b)

    def norm2(self, v: Tensor) -> Tensor:
        return self.total(v.square())

    def norm(self, v: Tensor) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
        return norm

    def total(self, v: Tensor) -> Tensor:
        if v.shape[-1] > _NARROW:
            return v.sum(-1, keepdim=True)
        return reduce(torch.Tensor.add, v.unbind(-1)).unsqueeze(-1)


def evaluate_tensor(
    node: Node,
    X: Tensor,
    *,
    sources: Tensor | None = None,
    weights: Tensor | None = None,
    attention_mask: Tensor | None = None,
    budget: int = BUDGET,
) -> Tensor:
    """f(X) of shape (batch, n, width) for X of shape (batch, n, d).

    Reductions run over `sources` (batch, m, d), by default X itself, token j counted `weights[b, j]` ≥ 0 times.
    `attention_mask` (batch, m): 1 keeps a token, 0 takes it out of every reduction; where the sources are X itself, the
    rows of the tokens taken out are 0.
    """
    _check(node, X, sources, weights, attention_mask)
    if attention_mask is not None:
        return _masked(node, X, sources, weights, attention_mask.to(torch.bool), budget)
    return _Evaluation(node, X, sources, weights, budget).result()


def _masked(node: Node, X: Tensor, sources: Tensor | None, weights: Tensor | None, keep: Tensor, budget: int) -> Tensor:
    """Rows with equally many kept tokens form one batch without the others, so that padding never enters a formula."""
    result = X.new_zeros(*X.shape[:2], node.width)
    counts = keep.sum(1)
    if int(counts.min()) == 0:
        raise InputError("attention_mask: expected at least one kept token per row, got a row with none")
    for count in sorted(set(counts.tolist())):
        rows = (counts == count).nonzero()[:, 0]
        at = (rows[:, None].expand(-1, count), keep[rows].nonzero()[:, 1].reshape(-1, count))
        w = None if weights is None else weights[at]
        if sources is None:
            result = result.index_put(at, _Evaluation(node, X[at], None, w, budget).result())
        else:
            result = result.index_put((rows,), _Evaluation(node, X[rows], sources[at], w, budget).result())
    return result


class _Evaluation:
    """One evaluation. Reductions, inner first: (batch, n, width), or (batch, 1, width) if the same for every token."""

    def __init__(self, node: Node, X: Tensor, sources: Tensor | None, weights: Tensor | None, budget: int) -> None:
        self.node, self.X, self.budget = node, X, budget
        self.ops = TorchOperations(X.dtype, X.device)
        self.Y = X if sources is None else sources
        self.weights = weights
        self.reduced: dict[Reduce, Tensor] = {}
        self.own = own_parts(node)

    def result(self) -> Tensor:
        for part in reductions(self.node):
            self.reduced[part] = self.reduce(part)
        value = evaluate(self.node, self.ops, Environment(x=self.X, reduce=self.reduced.__getitem__))
        return value.expand(*self.X.shape[:2], self.node.width).contiguous()

    def reduce(self, part: Reduce) -> Tensor:
        batch, n, m = *self.X.shape[:2], self.Y.shape[1]
        others = part.kind.endswith("_others")
        if others and n == 1 and part.kind == "mean_others":
            raise InputError("mean_others(…) needs at least 2 tokens, got 1")
        if part.body not in self.own:
            body = self.body(part, slice(None), self.Y)[:, 0]
            return self.without_own(part, body) if others else self.fold(part, body[:, None])
        widest = max(p.width for p in postorder(part.body, into_reductions=False))
        size = max(1, self.budget // max(1, batch * m * widest))
        chunks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        step = self.others_chunk if others else self.chunk
        if len(chunks) == 1 or not torch.is_grad_enabled():
            return torch.cat([step(part, c) for c in chunks], dim=1)
        parts = [checkpoint(step, part, c, use_reentrant=False, preserve_rng_state=False) for c in chunks]
        return torch.cat(parts, dim=1)

    def body(self, part: Reduce, queries: slice, Y: Tensor) -> Tensor:
        """e(x_i, y_j), shape (batch, queries, m, width), or (batch, 1, m, width) when x_i is not in it."""

        def nested(inner: Reduce) -> Tensor:
            value = self.reduced[inner]
            return (value if value.shape[1] == 1 else value[:, queries])[:, :, None]

        y = Y if Y.dim() == 4 else Y[:, None]
        env = Environment(x=self.X[:, queries, None], y=y, reduce=nested)
        return evaluate(part.body, self.ops, env)

    def chunk(self, part: Reduce, queries: slice) -> Tensor:
        return self.fold(part, self.body(part, queries, self.Y))

    def others_chunk(self, part: Reduce, queries: slice) -> Tensor:
        """Each query with the n − 1 tokens that are not itself: the body is never evaluated at the own token."""
        n = self.X.shape[1]
        own = torch.arange(queries.start, queries.stop, device=self.X.device)[:, None]
        j = torch.arange(n - 1, device=self.X.device)
        body = self.body(part, queries, self.X[:, j + (j >= own)])
        return body.sum(2) / (n - 1 if part.kind == "mean_others" else 1)

    def without_own(self, part: Reduce, body: Tensor) -> Tensor:
        """Σ_{j<i} e_j + Σ_{j>i} e_j: nothing is subtracted, so a large own term costs no accuracy."""
        zero = torch.zeros_like(body[:, :1])
        before = torch.cat([zero, body[:, :-1].cumsum(1)], dim=1)
        after = torch.cat([body[:, 1:].flip(1).cumsum(1).flip(1), zero], dim=1)
        return (before + after) / (body.shape[1] - 1 if part.kind == "mean_others" else 1)

    def fold(self, part: Reduce, body: Tensor) -> Tensor:
        """⊕ over the tokens, the third dimension."""
        w = None if self.weights is None else self.weights[:, None, :, None]
        if part.kind in ("max", "min"):
            if w is not None:  # a token counted 0 times is not there
                body = body.masked_fill(w == 0, float("-inf") if part.kind == "max" else float("inf"))
            return body.amax(2) if part.kind == "max" else body.amin(2)
        if w is None:
            return body.sum(2) if part.kind == "sum" else body.mean(2)
        weighted = (w * body).sum(2)
        return weighted if part.kind == "sum" else weighted / w.sum(2)


def own_parts(node: Node) -> frozenset[Node]:
    """The sub-trees whose value differs from token to token: with x, or a reduction that leaves the own token out."""
    own: set[Node] = set()
    for part in postorder(node):
        if isinstance(part, Token):
            varies = part.name == "x"
        else:
            others = isinstance(part, Reduce) and part.kind.endswith("_others")
            varies = others or any(child in own for child in part.children)
        if varies:
            own.add(part)
    return frozenset(own)


def _check(node: Node, X: Tensor, sources: Tensor | None, weights: Tensor | None, keep: Tensor | None) -> None:
    where = "evaluate_tensor"
    if X.dim() != 3 or 0 in X.shape:
        raise ShapeError(where, "X of shape (batch, n, d), none of them 0", X.shape)
    if not X.is_floating_point():
        raise DtypeError(where, "X of a floating-point dtype", X.dtype)
    batch, n, d = X.shape
    for token in (p for p in postorder(node) if isinstance(p, Token) and p.d != d):
        raise ShapeError(where, f"X of shape (batch, n, {token.d})", X.shape)
    others = any(part.kind.endswith("_others") for part in reductions(node))
    if others and (sources is not None or weights is not None):
        raise InputError(f"{where}: sum_others and mean_others have no own token to leave out of sources or weights")
    if sources is not None and (sources.dim() != 3 or sources.shape[::2] != (batch, d) or sources.shape[1] == 0):
        raise ShapeError(where, f"sources of shape ({batch}, m, {d})", sources.shape)
    if sources is not None and sources.dtype != X.dtype:
        raise DtypeError(where, f"sources of dtype {X.dtype}", sources.dtype)
    m = n if sources is None else sources.shape[1]
    for name, value in (("weights", weights), ("attention_mask", keep)):
        if value is not None and value.shape != (batch, m):
            raise ShapeError(where, f"{name} of shape ({batch}, {m})", value.shape)
    if weights is not None:
        if weights.dtype != X.dtype:
            raise DtypeError(where, f"weights of dtype {X.dtype}", weights.dtype)
        counted = weights if keep is None else weights * keep
        if not bool((weights >= 0).all() and weights.isfinite().all() and (counted.sum(1) > 0).all()):
            raise InputError(f"{where}: expected finite weights ≥ 0 with a positive sum in each row")

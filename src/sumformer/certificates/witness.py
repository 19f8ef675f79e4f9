"""|f(X)_1 − N(X)_1| at one multiset X: f in float64 and again in balls, N as the network computed it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from math import inf, isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.targets import Environment, Reduce, Target, evaluate, reductions
from sumformer.targets.torch_evaluation import TorchOperations

SHOWN = 12


@dataclass(frozen=True, eq=False)
class Witness:
    """A multiset of the domain, its first token the own one; f there in float64, and N as the network computed it."""

    target: Target
    tokens: Tensor
    weights: tuple[int, ...]
    wanted: tuple[float, ...]
    got: tuple[float, ...]

    @property
    def n(self) -> int:
        return sum(self.weights)

    @property
    def error(self) -> float:
        """‖f − N‖_∞ at the own token; ∞ where N is not finite."""
        if not all(isfinite(v) for v in self.got):
            return inf
        return max(abs(a - b) for a, b in zip(self.wanted, self.got, strict=True))

    def balls(self, arb: Any) -> list[Any]:
        """f at the own token in balls, tokens and counts exact: (m, width) arrays of `arb`."""
        points = np.array([[arb(v) for v in z] for z in self.tokens.tolist()], dtype=object)
        counts = np.array([[arb(w)] for w in self.weights], dtype=object)
        ops = _BallOperations(arb)
        values: dict[Reduce, Any] = {}
        env = Environment(x=points[:1], y=points, reduce=values.__getitem__)
        for part in reductions(self.target.expression):
            w = counts.copy()
            w[0, 0] -= part.kind.endswith("_others")
            there = np.array([k != 0 for k in w[:, 0]])
            body, w = evaluate(part.body, ops, env)[there], w[there]
            if part.kind in ("max", "min"):
                values[part] = reduce(partial(ops.extremum, part.kind), body)[None]
            else:
                total = (w * body).sum(axis=0, keepdims=True)
                values[part] = total / w.sum() if part.kind.startswith("mean") else total
        row: list[Any] = evaluate(self.target.expression, ops, env).reshape(-1).tolist()
        return row * self.target.width if len(row) == 1 else row

    def X(self, most: int = 10**6) -> Tensor:
        """(1, n, d), every token written as often as it counts, the own one first."""
        if self.n > most:
            raise InputError(f"Witness.X: expected n ≤ {most}, got n = {self.n}; use `tokens` and `weights`")
        return self.tokens.repeat_interleave(torch.tensor(self.weights, device=self.tokens.device), dim=0)[None]

    def __str__(self) -> str:
        rows = [f"  {w} × {_vector(z)}" for w, z in zip(self.weights, self.tokens.tolist(), strict=True)]
        rows[0] += "   ← the own token, once of these"
        head = f"|f − N| = {self.error:.3e} at n = {self.n}: f = {_vector(self.wanted)}, N = {_vector(self.got)}"
        shown = rows if len(rows) <= SHOWN else [*rows[:SHOWN], f"  … and {len(rows) - SHOWN} more"]
        return "\n".join([head, *shown])

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(str(self))


class _BallOperations(TorchOperations):
    """The same arithmetic for arrays of balls (…, width); what only adds, multiplies and slices is inherited."""

    def __init__(self, arb: Any) -> None:
        self.arb = arb

    def const(self, value: Fraction) -> Any:
        return np.array([self.arb(value.numerator) / value.denominator], dtype=object)

    def power(self, v: Any, k: int) -> Any:
        return v**k

    def unary(self, fn: str, v: Any) -> Any:
        if fn == "sigmoid":
            return 1 / (1 + self.unary("exp", -v))
        return np.frompyfunc(abs if fn == "abs" else operator.methodcaller(fn), 1, 1)(v)

    def extremum(self, op: str, a: Any, b: Any) -> Any:
        return np.frompyfunc(lambda p, q: p.min(q) if op == "min" else p.max(q), 2, 1)(a, b)

    def cat(self, values: Sequence[Any]) -> Any:
        rows = np.broadcast_shapes(*(v.shape[:-1] for v in values))
        return np.concatenate([np.broadcast_to(v, (*rows, v.shape[-1])) for v in values], axis=-1)

    def total(self, v: Any) -> Any:
        return v.sum(axis=-1, keepdims=True)

    def norm2(self, v: Any) -> Any:
        return self.total(v * v)

    def norm(self, v: Any) -> Any:
        return self.unary("sqrt", self.norm2(v))


def _vector(values: Sequence[float]) -> str:
    return f"({', '.join(f'{v:.9g}' for v in values)})"

"""A 2.9: f is equivariant ⟺ f(X)_i = g(x_i; {x_j}_{j≠i}) with g semi-invariant. Both ways, for polynomials and tensors.

(⇒) g = f_1. A permutation P that fixes the first place gives f(PX)_1 = (P f(X))_1 = f(X)_1.
(⇐) Row i of f(PX) is g at the token that P puts there and the multiset of all the rest, which P does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.algebra.expanded_polynomial import Expanded, ExpandedPolynomial
from sumformer.errors import InputError, NotSymmetricError, ShapeError

Equivariant = Callable[[Tensor], Tensor]
"""(batch, n, d) → (batch, n, width)"""
SemiInvariant = Callable[[Tensor, Tensor], Tensor]
"""(batch, d) and (batch, n − 1, d) → (batch, width)"""


def semi_invariant(f: Sequence[Expanded], d: int = 1) -> dict[tuple[int, ...], Fraction]:
    """g of f = (f_1, …, f_n), one polynomial of n tokens a row; refused with two exponents unless f is equivariant."""
    n = len(f)
    if n == 0:
        raise InputError("semi_invariant: expected f_1, …, f_n, got none")
    g = _cleaned(f[0])
    _require_semi_invariant(g, n, d)
    for i in range(1, n):
        expected, found = _exchanged(g, i, d), _cleaned(f[i])
        for e in {**expected, **found}:
            if expected.get(e, 0) != found.get(e, 0):
                pair = (_exchange(e, i, d), e)
                raise NotSymmetricError(pair, (g.get(pair[0], Fraction(0)), found.get(e, Fraction(0))), (0, i))
    return g


def equivariant(g: Expanded, n: int, d: int = 1) -> tuple[dict[tuple[int, ...], Fraction], ...]:
    """f_i(X) = g(x_i; the others), i = 1 … n; refused with two exponents unless g is semi-invariant."""
    first = _cleaned(g)
    _require_semi_invariant(first, n, d)
    return tuple(_exchanged(first, i, d) for i in range(n))


def semi_invariant_function(f: Equivariant) -> SemiInvariant:
    """g(x; Y) = f([x, Y])_1; semi-invariant if f is equivariant, which is for the caller to know or to test."""

    def g(x: Tensor, others: Tensor) -> Tensor:
        return f(torch.cat([x[:, None], others], dim=1))[:, 0]

    return g


def equivariant_function(g: SemiInvariant) -> Equivariant:
    """f(X)_i = g(x_i; X without row i), all rows in one call of g; equivariant if g is semi-invariant."""

    def f(X: Tensor) -> Tensor:
        if X.dim() != 3:
            raise ShapeError("equivariant_function", "X of shape (batch, n, d)", X.shape)
        batch, n, d = X.shape
        rest = torch.arange(n, device=X.device).expand(n, n)[~torch.eye(n, dtype=torch.bool, device=X.device)]
        others = X[:, rest.reshape(n, n - 1)].reshape(batch * n, n - 1, d)
        return g(X.reshape(batch * n, d), others).reshape(batch, n, -1)

    return f


def _require_semi_invariant(g: Expanded, n: int, d: int) -> None:
    ExpandedPolynomial.of(g, n, d).orbits(own=1)


def _exchanged(g: Expanded, i: int, d: int) -> dict[tuple[int, ...], Fraction]:
    """g with tokens 1 and i + 1 exchanged."""
    return {_exchange(e, i, d): c for e, c in g.items()}


def _exchange(e: tuple[int, ...], i: int, d: int) -> tuple[int, ...]:
    if i == 0:
        return e
    return e[i * d : (i + 1) * d] + e[d : i * d] + e[:d] + e[(i + 1) * d :]


def _cleaned(f: Expanded) -> dict[tuple[int, ...], Fraction]:
    return {e: c for e, c in f.items() if c}

"""f(X)_1 modulo p of a polynomial target at n tokens at once: the value against which its power-sum form is proved."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NoReturn

import numpy as np

from sumformer.algebra.identity_proof import IdentityProof, Points, prove_zero, size, weight
from sumformer.algebra.modular import Residues
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial
from sumformer.errors import RefusedError
from sumformer.targets import Environment, Node, Reduce, evaluate, reductions
from sumformer.theorems.alberti_2023.polynomial_size import size_of
from sumformer.theorems.alberti_2023.polynomial_tree import share

MOST_TOKENS: Final = 1_000_000


class ResidueOperations:
    """Arrays (…, width) of residues modulo p < 2³¹."""

    def __init__(self, p: int) -> None:
        self.p = np.uint64(p)

    def const(self, value: Fraction) -> Residues:
        p = int(self.p)
        return np.array([value.numerator * pow(value.denominator, -1, p) % p], dtype=np.uint64)

    def add(self, a: Residues, b: Residues) -> Residues:
        return (a + b) % self.p

    def sub(self, a: Residues, b: Residues) -> Residues:
        return (a + (self.p - b)) % self.p

    def mul(self, a: Residues, b: Residues) -> Residues:
        return a * b % self.p

    def neg(self, v: Residues) -> Residues:
        return (self.p - v) % self.p

    def power(self, v: Residues, k: int) -> Residues:
        result = np.ones_like(v)
        for _ in range(k):
            result = result * v % self.p
        return result

    def cat(self, values: Sequence[Residues]) -> Residues:
        shape = np.broadcast_shapes(*(v.shape[:-1] for v in values))
        return np.concatenate([np.broadcast_to(v, (*shape, v.shape[-1])) for v in values], axis=-1)

    def slice(self, v: Residues, start: int, stop: int) -> Residues:
        return v[..., start:stop]

    def dot(self, a: Residues, b: Residues) -> Residues:
        return self.total(self.mul(a, b))

    def norm2(self, v: Residues) -> Residues:
        return self.dot(v, v)

    def total(self, v: Residues) -> Residues:
        return np.asarray(v.sum(axis=-1, keepdims=True) % self.p)

    def div(self, a: Residues, b: Residues) -> NoReturn:
        raise RefusedError("the target is not a polynomial")

    def unary(self, fn: str, v: Residues) -> NoReturn:
        raise RefusedError("the target is not a polynomial")

    def extremum(self, op: str, a: Residues, b: Residues) -> NoReturn:
        raise RefusedError("the target is not a polynomial")

    def norm(self, v: Residues) -> NoReturn:
        raise RefusedError("the target is not a polynomial")


def tree_residue(node: Node, points: Points, p: int) -> Residues:
    """f(points)_1 modulo p, (width,)."""
    ops, X = ResidueOperations(p), np.array(points, dtype=np.uint64)
    values: dict[Reduce, Residues] = {}
    for part in reductions(node):
        others = X[1:] if part.kind.endswith("_others") else X
        body = evaluate(part.body, ops, Environment(X[0], others, values.__getitem__))
        total = np.asarray(np.broadcast_to(body, (len(others), part.width)).sum(axis=0) % ops.p)
        values[part] = ops.mul(ops.const(share(part, len(X))), total)
    value = evaluate(node, ops, Environment(X[0], None, values.__getitem__))
    return np.asarray(np.broadcast_to(value, (node.width,)))


def prove_tree_identity(
    node: Node, sigmas: Sequence[PowerSumPolynomial], n: int, d: int, source: random.Random | None = None
) -> IdentityProof:
    """That f(X)_1 = (σ_c(x_1; Σ_{j≥2} φ(x_j)))_c for a polynomial target, coordinate by coordinate, or refuse."""
    if n > MOST_TOKENS:
        raise RefusedError("the identity is proved at n tokens", [f"n = {n} is above {MOST_TOKENS}; ask for fewer"])
    written = size_of(node, n, d, expanded=True)
    common = written.denominator
    bits = written.bits + max(s.denominator.bit_length() + size(s).bit_length() for s in sigmas) + 1
    degree = max(written.degree, *(weight(s) for s in sigmas))

    def difference(points: Points, p: int) -> int:
        left = tree_residue(node, points, p).tolist()
        rows = zip(left, sigmas, strict=True)
        wrong = [(v * s.denominator - s.modular(points[0], points[1:], p)) % p for v, s in rows]
        return next((w for w in wrong if w), 0)

    return prove_zero(difference, n, d, degree, bits, source, avoid=common)

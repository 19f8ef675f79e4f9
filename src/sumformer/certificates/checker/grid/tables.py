"""config.json of a `GridSumformer`, its code, and r_c: how far a token may be from the centre of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.certificates.checker.files import Tensors, read_described
from sumformer.certificates.checker.json_values import has_keys, integer, items
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.parser import parse

EXACT = 2**53
MAX_CELLS = 2**24
_KEYS = {"type", "expression", "d", "n", "cells", "code", "arithmetic"}


@dataclass(frozen=True)
class Network:
    """The formula, the largest number of tokens, cells along each coordinate, and the code of a multiset of cells."""

    expression: Node
    d: int
    n: int
    cells: tuple[int, ...]
    code: str
    arithmetic: str

    @property
    def latent_dimension(self) -> int | None:
        return latent_dimension(self.code, self.n, prod(self.cells))


def latent_dimension(code: str, n: int, cells: int) -> int | None:
    """d' of the code; None where Σ is not exact, or does not determine the multiset of at most n of the cells.

    Digits: a base above n, and every lane an integer below 2^53. Syndrome: n − 1 power sums modulo a prime q that
    exceeds n − 1 (Newton divides by 1, …, n − 1) and is at least the number of cells (which stay distinct); the
    scan for roots adds up to n products of residues.
    """
    if code == "syndrome":
        q = max(cells, n + 1)
        while n * q * q < EXACT and not _is_prime(q):
            q += 1
        return n - 1 if n * q * q < EXACT else None
    kind, _, base_name = code.partition(" ")
    if kind not in ("lanes", "integer") or code not in (kind, f"{kind} n+1"):
        return None
    base = n + 1 if base_name else 1 << n.bit_length()
    if kind == "integer":
        return 1
    digits = 0
    while base ** (digits + 1) <= EXACT:
        digits += 1
    return -(-cells // digits) if digits else None


def read_grid(folder: Path) -> Network:
    return read_described(folder, "a network on a grid", _network)


def _network(data: Any) -> Network:
    has_keys(data, _KEYS)
    d, n = integer(data["d"]), integer(data["n"])
    cells = tuple(integer(k) for k in items(data["cells"]))
    if not (1 <= d <= 28 and 1 <= n <= 2**20) or len(cells) != d:
        raise ValueError("expected 1 ≤ d ≤ 28, 1 ≤ n ≤ 2^20, and d numbers of cells")
    if any(k < 1 for k in cells) or prod(cells) > MAX_CELLS:
        raise ValueError(f"expected at least one cell along each coordinate, and at most {MAX_CELLS} in all")
    if data["arithmetic"] not in ("float64", "float32", "mixed") or not isinstance(data["code"], str):
        raise ValueError(f"unknown arithmetic {data['arithmetic']!r}, or a code that is no string")
    return Network(parse(data["expression"], d), d, n, cells, data["code"], data["arithmetic"])


def table_failures(tensors: Tensors, cells: Sequence[int], arithmetic: str, box: Box) -> list[str]:
    """Edges that ascend and centres in the box, of the right shapes and types, and no other tensor."""
    out = []
    if tensors.keys() != {f"{name}.{c}" for name in ("edges", "centres") for c in range(len(cells))}:
        return ["weights: expected edges and centres for each coordinate, and nothing else"]
    inside = np.dtype(np.float32 if arithmetic == "float32" else np.float64)
    for c, count in enumerate(cells):
        edges, centres = tensors[f"edges.{c}"], tensors[f"centres.{c}"]
        if edges.shape != (count - 1,) or edges.dtype != np.dtype(np.float64):
            out.append(f"weights: edges.{c} should be float64 {(count - 1,)}")
        elif centres.shape != (count,) or centres.dtype != inside:
            out.append(f"weights: centres.{c} should be {inside} {(count,)}")
        elif not bool(np.isfinite(edges).all() and np.isfinite(centres).all() and (np.diff(edges) >= 0).all()):
            out.append(f"weights: edges.{c} should ascend, and all numbers be finite")
        elif not all(box.lower[c] <= Fraction(float(m)) <= box.upper[c] for m in centres):
            out.append(f"weights: centres.{c} should lie in the box, outside which nothing is known of the target")
    return out


def radius(tensors: Tensors, c: int, box: Box) -> Fraction:
    """r_c exactly: the largest distance in coordinate c from a point of a cell to its centre."""
    inner = [min(max(Fraction(float(e)), box.lower[c]), box.upper[c]) for e in tensors[f"edges.{c}"]]
    ends, centres = [box.lower[c], *inner, box.upper[c]], [Fraction(float(m)) for m in tensors[f"centres.{c}"]]
    return max(max(m - a, b - m) for m, a, b in zip(centres, ends[:-1], ends[1:], strict=True))


def place_radius(tensors: Tensors, c: int, n: int) -> Fraction:
    """r_c of a coordinate that is a position: the largest distance of 1, …, n alone."""
    cells: list[int] = np.searchsorted(tensors[f"edges.{c}"], np.arange(1.0, n + 1), side="right").tolist()
    centres = [Fraction(float(m)) for m in tensors[f"centres.{c}"]]
    return max(abs(k + 1 - centres[cell]) for k, cell in enumerate(cells))


def _is_prime(q: int) -> bool:
    return q >= 2 and all(q % k for k in range(2, isqrt(q) + 1))

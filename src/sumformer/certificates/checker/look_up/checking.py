"""check(directory) for a `LookUpTransformer`: what it writes for every own cell and multiset of others, against f.

0. integrity     hashes; certificate, configuration and weights fit together; every other weight is 0
1. grid          edges, ramps and q of every cell, exactly
2. code, head    φ of every cell, exactly; the mean of n codes within the head's rounding
3. table         the key A·q + G·mean of every choice of cells is off all steps by more than its rounding: the entry v
4. gap           |v − f(centres)|, f in intervals; modulus: sup |f(X) − f(centres)| by slopes, all tokens moving
5. ramps         (relu) share of the inputs on them × the range of f and N; d_p from the bound off the ramps
6. verified      iff nothing failed and the sum ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.compiled.head import read_head
from sumformer.certificates.checker.compiled.stream import HUGE
from sumformer.certificates.checker.deep.dyadic import FLOOR
from sumformer.certificates.checker.files import read_certificate, read_weights
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.certificates.checker.integral_norm import SUMMED, powers, root, volume_above
from sumformer.certificates.checker.interval import Floats, Interval, from_fraction
from sumformer.certificates.checker.look_up.claims import (
    KINDS,
    NAMES,
    constant_failures,
    field_failures,
    number,
)
from sumformer.certificates.checker.look_up.files import Network, read_look_up
from sumformer.certificates.checker.look_up.grid import Cells, read_cells
from sumformer.certificates.checker.look_up.staircase import Ints, Staircase, staircase
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.token_values import ListedIntervals, token_values
from sumformer.certificates.checker.verdict import (
    claim_failures,
    claims,
    finite_sum,
    hash_failures,
    proving,
    term_failures,
    verdict,
)
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target

U = 2.0**-53
GOAL = 1.02  # of the recorded constant
MOST_ENTRIES = 2**20
Parts = tuple[float, float, float]


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c = read_certificate(folder)
    net, f = read_look_up(folder, read_weights(folder)), read_target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c, KINDS) + field_failures(c, f, net)
    parts: Parts = (math.inf, math.inf, math.inf)
    if not failures:
        with proving(failures):
            parts, failures = _prove(c, f, net)
    shown = dict(zip(NAMES[: 2 if net.activation == "step" else 3], parts, strict=False))
    return verdict(c, shown, finite_sum(parts) * SUMMED, failures, start)


def _prove(c: Certificate, f: Target, net: Network) -> tuple[Parts, list[str]]:
    """The parts of the bound, and which of them are more than claimed."""
    n, named = net.tokens, net.named
    ends = (list(range(net.d)), [net.cell]), ([net.cell], [*net.sources]), ([net.cell, *net.targets], [*net.out])
    grid, code, table = (staircase(layers, *io, named) for layers, io in zip(net.stairs, ends, strict=True))
    if len(grid.workspace | code.workspace | table.workspace) != sum(len(s.workspace) for s in (grid, code, table)):
        raise Unproved("two staircases share a workspace coordinate")
    head = read_head(net, f.tokens)
    if net.tensors.keys() != net.tensor_names | head.tensors:
        raise Unproved("weights: some belong to no part of the network, or are missing")
    _all_finite(net, f, max(head.mixed, 4.0 * head.count * (1 + head.relative)))
    cells = read_cells(grid, f.box)
    own, others = _choices(len(cells.q), n)
    scale = float(code.shared_reads()[0])
    phi = code.climb(scale * cells.q, _rounding(abs(scale) * float(grid.mass[0]), code))[:, 0]
    a, g = (float(v) for v in table.shared_reads())
    if not bool((phi == np.rint(phi)).all()) or n * float(np.abs(phi).max()) >= 2.0**52:
        raise Unproved("sums of codes are not whole numbers that float64 holds")
    total = phi[own] + phi[others].sum(1)
    largest = float(code.mass[0])
    error = abs(g) * head.relative * largest + _rounding(abs(a) * float(grid.mass[0]) + abs(g) * largest, table)
    values = table.climb(a * cells.q[own] + g * (total / n), error * SUMMED)
    gap = _gap(f, cells, own, others, values)
    failures = constant_failures(c, f, net, cells, len(own), float(phi.max()))
    modulus = _modulus(c, f, cells)
    if net.activation == "step":
        return _compared(c, (modulus, gap, 0.0), failures)
    table.ramps_apart(error * SUMMED)
    off = (modulus + gap) * SUMMED
    if not off <= number(c, "sup_off_ramps") <= c.epsilon:
        failures.append(f"constants: sup_off_ramps should be at least {off:.6g}, and at most ε")
    return _compared(c, _in_d_p(number(c, "p"), f, (modulus, gap), _reach(table, off), cells), failures)


def _all_finite(net: Network, f: Target, mixed: float) -> None:
    """No number of the stream overflows, also where nothing reads it: 0 · ∞ is no number."""
    size = max(1.0, *(float(abs(end)) for end in (*f.box.lower, *f.box.upper)))
    for step, layers in enumerate(net.stairs):
        if step == 2:  # behind the attention
            if not mixed * size < HUGE:
                raise Unproved("attention: a sum over the tokens may overflow")
            size *= max(1.0, mixed)
        for layer in layers:
            reads = np.bincount(layer.rows_1, np.abs(layer.values_1), len(layer.b_1))
            reach = reads * size + np.abs(layer.b_1)
            wrote = np.bincount(layer.rows_2, np.abs(layer.values_2) * reach[layer.columns_2], len(layer.b_2))
            size += float((wrote + np.abs(layer.b_2)).max(initial=0.0))
            if not (size < HUGE and bool((reach < HUGE).all())):
                raise Unproved("a number of the stream may overflow")


def _rounding(size: float, stair: Staircase) -> float:
    """Of a few products, their sum and a bias, in the network and here: at most 16 roundings of numbers up to …

    And as many underflows, here too.
    """
    return 16 * U * (size + float(np.abs(stair.b).max(initial=0.0))) * SUMMED + FLOOR


def _choices(cells: int, n: int) -> tuple[Ints, Ints]:
    """Every own cell (m,) with every multiset of the others' (m, n − 1)."""
    count = math.comb(cells + n - 2, n - 1)
    if cells * count > MOST_ENTRIES:
        raise Unproved(f"more than {MOST_ENTRIES} choices of cells")
    sets = np.array(list(combinations_with_replacement(range(cells), n - 1)), dtype=np.int64).reshape(count, n - 1)
    return np.repeat(np.arange(cells), len(sets)), np.tile(sets, (cells, 1))


def _gap(f: Target, cells: Cells, own: Ints, others: Ints, values: Floats) -> float:
    """max |v − f(centres)|."""
    counts = cells.counts
    sides = [[from_fraction(m) for m in middles] for middles in cells.centres()]
    low, high = ([np.array([float(getattr(v, end)) for v in side]) for side in sides] for end in ("lo", "hi"))

    def token(cell: Ints) -> list[Interval]:
        digits = np.unravel_index(cell, counts)
        return [Interval(a[k], b[k]) for a, b, k in zip(low, high, digits, strict=True)]

    found = token_values(f.expression, ListedIntervals(), token(own), [token(y) for y in others.T])
    gaps = [np.maximum(value.hi - values[:, w], values[:, w] - value.lo).max() for w, value in enumerate(found)]
    worst = float(np.nextafter(np.max([0.0, *gaps]), np.inf))
    if not worst < math.inf:
        raise Unproved("the target cannot be enclosed at a cell's centre")
    return worst


def _modulus(c: Certificate, f: Target, cells: Cells) -> float:
    radii = cells.radii()
    above = np.array([math.nextafter(float(r), math.inf) for r in radii])
    ratio = max(r / h for r, h in zip(radii, f.box.radius, strict=True))
    goal = GOAL * number(c, "lipschitz") * float(ratio)
    return Modulus(f.expression, f.box, f.tokens.maximum, above, own=True).bound(goal)


def _reach(table: Staircase, off: float) -> Floats:
    """≥ |f − N| anywhere: f within `off` of the levels, N between two of them, its sum rounded on ramps."""
    levels = table.levels(np.argsort(-table.b, kind="stable"))
    rounded = (len(table.b) + 8) * 4 * U * table.mass
    reach: Floats = (levels.max(0) - levels.min(0) + off + rounded) * SUMMED
    return reach


def _in_d_p(p: float, f: Target, off: tuple[float, float], reach: Floats, cells: Cells) -> Parts:
    n = f.tokens.maximum
    volume = volume_above(f.box.volume**n)
    scale = root(volume, n * f.width, p)
    on = float(cells.ramp_share(n)) * n * float(powers(reach, p).sum())
    modulus, gap = (math.nextafter(part * scale, math.inf) for part in off)
    return modulus, gap, root(volume, on, p) * SUMMED


def _compared(c: Certificate, parts: Parts, failures: list[str]) -> tuple[Parts, list[str]]:
    found = dict(zip(NAMES, parts, strict=True))
    return parts, failures + claim_failures(c, claims(c), found, lambda _, claim: 1.02 * claim + 1e-6 * c.total)

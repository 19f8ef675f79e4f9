"""check(directory) for a deep network: (∫ ‖f − N‖_p^p)^{1/p} ≤ cells + equal cells + ramps, from the saved weights.

0. integrity        hashes; certificate, configuration and weights fit together
1. quantiser        which inputs are taken to their cells exactly: all but a share of each
2. simulation       what the network writes for every choice of cells, exactly; where that is not proved, its range
3. integral         sup |f − N| on the parts of each cell, in intervals, summed
4. verified         iff nothing failed and the sum ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.certificates.checker.deep.cell_values import Ints, on_cells
from sumformer.certificates.checker.deep.claims import (
    KINDS,
    NAMES,
    ZERO,
    constant_failures,
    field_failures,
    part_failures,
    power,
    whole,
)
from sumformer.certificates.checker.deep.files import Attention, Floats, Network, read_deep_network
from sumformer.certificates.checker.deep.quantiser import Quantiser, read_quantiser
from sumformer.certificates.checker.deep.read_out import HUGE, output_range
from sumformer.certificates.checker.deep.simulation import simulate
from sumformer.certificates.checker.files import read_certificate, read_weights
from sumformer.certificates.checker.integral_norm import SUMMED, powers, root, volume_above
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import finite_sum, hash_failures, proving, term_failures, verdict
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.target import Target

Booleans = NDArray[np.bool_]
MOST_ROWS = 400_000


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c = read_certificate(folder)
    network = read_deep_network(folder, read_weights(folder))
    f = _target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c, KINDS) + field_failures(c, f, network)
    parts = dict.fromkeys(NAMES if network.layers else (ZERO,), math.inf)
    if not failures:
        with proving(failures):
            parts, wrong = _parts(c, f, network)
            failures += wrong + part_failures(c, parts)
    return verdict(c, parts, finite_sum(parts.values()) * SUMMED, failures, start)


def _target(folder: Path, c: Certificate) -> Target:
    f = read_target(folder, c)
    try:
        return replace(f, positioned=True) if c.constants.get("positions") is True else f
    except SumformerError as error:
        raise FileFormatError(folder / CERTIFICATE_FILE, f"its positions do not make sense ({error})") from error


def _parts(c: Certificate, f: Target, network: Network) -> tuple[dict[str, float], list[str]]:
    """The terms of the bound, and what is wrong with the recorded constants."""
    q, s, p = (whole(c, "cells", least=0), whole(c, "parts"), power(c))
    volume = volume_above(f.input_box.volume**network.n)
    if not network.layers:
        return {ZERO: _zero(f, network, s, p, volume)}, constant_failures(c, network, None)
    quantiser = read_quantiser(network, f.input_box, q)
    low, high = output_range(network, q * (1 if quantiser.places is None else network.n))
    cells, values, sure, listed = _written(network, quantiser, f.positioned)
    apart, equal, reach = _integrals(f, cells, values, sure, (low, high), q, s, p, listed)
    if quantiser.places is not None:  # every choice of cells has values of its own
        apart, equal = apart + equal, 0.0
    measure = min(1.0, network.n * network.d * quantiser.share)
    ramps = measure * network.n * float(powers(reach, p).sum())
    found = [root(volume, part, p) * SUMMED for part in (apart, equal, ramps)]
    return dict(zip(NAMES, found, strict=True)), constant_failures(c, network, quantiser)


def _written(network: Network, quantiser: Quantiser, listed: bool) -> tuple[Ints, Floats, Booleans, bool]:
    """Choices of cells (m, n), what N gives for each (m, n, outputs), whether that is proved, and if all are listed.

    Without positions the network is equivariant, so sorted choices are all. With them every order is run, and must give
    the sorted one's values in its own order, unless the target is of sequences (`listed`): then all orders stand, and
    they do where two tokens in one cell have two values.
    """
    n, q, d = network.n, quantiser.q, network.d
    count = q**d
    rows = _choices(count, n, listed)
    if quantiser.places is None:
        if listed:
            raise Unproved("the target knows the places of its tokens, the network does not")
        if not all(layer.who.all() for layer in network.layers if isinstance(layer, Attention)):
            raise Unproved("without positions every token must attend to all: else orders of the tokens differ")
        state = simulate(network, _start(network, quantiser, rows), 1)
        return rows, state.z @ network.head.T, state.sure, False
    every = _choices(count, n, True)
    state = simulate(network, _start(network, quantiser, every), 1)
    values, radix = state.z @ network.head.T, count ** np.arange(n - 1, -1, -1)
    if listed:
        return every, values, state.sure, True
    order = np.argsort(every, axis=1, kind="stable")
    home = np.take_along_axis(every, order, 1) @ radix
    sorted_values = values[home]
    if not bool((np.take_along_axis(values, order[:, :, None], 1) == sorted_values).all()):
        raise Unproved("the network's values depend on the order of the tokens, the target's do not")
    same = rows[:, 1:] == rows[:, :-1]
    if bool((values[rows @ radix][:, 1:] != values[rows @ radix][:, :-1])[same].any()):
        return every, values, state.sure, True
    sure = np.ones(len(every), dtype=np.bool_)
    np.logical_and.at(sure, home, state.sure)
    at = rows @ radix
    return rows, values[at], sure[at], False


def _start(network: Network, quantiser: Quantiser, rows: Ints) -> Floats:
    start = np.zeros((*rows.shape, network.width))
    for i in range(network.d):
        start[..., i] = (rows // quantiser.q**i) % quantiser.q
        if quantiser.places is not None:
            start[..., i] += quantiser.q * np.array(quantiser.places)
    return start


def _integrals(
    f: Target,
    cells: Ints,
    values: Floats,
    sure: Booleans,
    ends: tuple[Floats, Floats],
    q: int,
    s: int,
    p: float,
    listed: bool,
) -> tuple[float, float, Floats]:
    """∫ ‖f − N‖^p per unit of volume where cells differ and where some agree, and the range of |f − N|."""
    n, d, fine = cells.shape[1], f.input_box.d, q * s
    rows = _choices(fine**d, n, listed)
    low, high = on_cells(f, rows, fine)
    coarse = sum(((rows // fine**i) % fine) // s * q**i for i in range(d))
    order = np.argsort(np.zeros_like(coarse) if listed else coarse, axis=1, kind="stable")
    sorted_cells = np.take_along_axis(np.asarray(coarse), order, 1)
    row = np.searchsorted(_numbers(cells, q**d), _numbers(sorted_cells, q**d))
    if not bool((cells[row] == sorted_cells).all()):
        raise Unproved("cells are not found among those the network was run on")
    written = np.take_along_axis(values[row], np.argsort(order, axis=1)[:, :, None], 1)
    gap = np.maximum(high - written, written - low)
    reach = np.maximum(high.max((0, 1)) - ends[0], ends[1] - low.min((0, 1))) * SUMMED
    gap = np.where(sure[row][:, None, None], np.nextafter(gap, np.inf), reach)
    weight = _orders(rows, listed) / float(fine) ** (d * n)
    sums = powers(np.maximum(gap, 0.0), p).sum((1, 2)) * weight
    equal = (np.diff(np.sort(np.asarray(coarse), axis=1), axis=1) == 0).any(1)
    return float(sums[~equal].sum()) * SUMMED, float(sums[equal].sum()) * SUMMED, np.asarray(reach)


def _numbers(cells: Ints, count: int) -> Any:
    """Rows as numbers to the base `count`, exactly."""
    n = cells.shape[1]
    powers_of = np.array([count**k for k in reversed(range(n))], dtype=np.int64 if count**n < 2**62 else object)
    return cells.astype(powers_of.dtype) @ powers_of


def _zero(f: Target, network: Network, s: int, p: float, volume: float) -> float:
    """The network without layers whose head is 0."""
    if np.any(network.head != 0):
        raise Unproved("a network without layers should be 0")
    (W, b), table = network.embedding, 0.0 if network.places is None else np.abs(network.places)
    largest = np.array(
        [float(max(abs(lo), abs(hi))) for lo, hi in zip(f.input_box.lower, f.input_box.upper, strict=True)]
    )
    if not bool((np.abs(W) @ largest + np.abs(b) + table < HUGE).all()):
        raise Unproved("the embedding may overflow: 0 times that is no number")
    d, n = f.input_box.d, network.n
    rows = _choices(s**d, n, f.positioned)
    low, high = on_cells(f, rows, s)
    sums = powers(np.maximum(np.abs(low), np.abs(high)), p).sum((1, 2)) * _orders(rows, f.positioned)
    return root(volume, float(sums.sum()) / float(s) ** (d * n) * SUMMED, p)


def _choices(count: int, n: int, listed: bool) -> Ints:
    """Multisets of n of `count` cells, sorted; or all lists of them."""
    number = count**n if listed else math.comb(count + n - 1, n)
    if number > MOST_ROWS:
        raise Unproved(f"{number} choices of cells; at most {MOST_ROWS} are looked at")
    every = product(range(count), repeat=n) if listed else combinations_with_replacement(range(count), n)
    return np.array(list(every), dtype=np.int64).reshape(-1, n)


def _orders(rows: Ints, listed: bool) -> Floats:
    """n!/Π m!, or 1 for a list."""
    out, run = np.full(len(rows), float(math.factorial(rows.shape[1]))), np.ones(len(rows))
    for i in range(1, rows.shape[1]):
        run = np.where(rows[:, i] == rows[:, i - 1], run + 1, 1.0)
        out = out / run
    return np.ones(len(rows)) if listed else out

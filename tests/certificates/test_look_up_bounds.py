"""B' of a `LookUpTransformer`, term by term: tokens at the ends of their cells, tables and ramps that were changed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tampered import Tampered, put

from sumformer.certificates.checker import check
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct, load

Tensors = dict[str, np.ndarray]
STEPS = {"route": "grid", "options": {"activation": "step"}}
RAMPS = {"route": "grid", "options": {"activation": "relu"}}


def saved(tmp_path: Path, source: str, epsilon: float, **options: Any) -> Tampered:
    construct(source, epsilon, **options).save(tmp_path / "net")
    return Tampered(tmp_path / "net", tmp_path / "changed")


def off(made: Construction, X: Any) -> float:
    """max |f − N|."""
    tokens = torch.as_tensor(X, dtype=torch.float64)
    with torch.no_grad():
        return float((made.target(tokens) - made.network(tokens)).abs().max())


# ---- cells and tables, in the sup norm


def table_up(t: Tensors) -> None:
    t["blocks.2.feed_forward.b_2"][-1] += 0.25


def table_down(t: Tensors) -> None:
    t["blocks.2.feed_forward.b_2"][-1] -= 0.25


def edge_up(t: Tensors) -> None:
    t["blocks.0.feed_forward.b_1"][0] -= 1 / 16


def edge_down(t: Tensors) -> None:
    t["blocks.0.feed_forward.b_1"][0] += 1 / 16


@pytest.mark.parametrize("change", [None, table_up, table_down, edge_up, edge_down])
@pytest.mark.parametrize("architecture", ["transformer", "linformer", "performer"])
@pytest.mark.parametrize(("source", "n"), [("x + mean(y)", 2), ("3*x - sum_others(y)", 3), ("2*x + 0*mean(y)", 1)])
def test_tokens_at_the_ends_of_their_cells(tmp_path: Path, source: str, n: int, architecture: str, change: Any) -> None:
    """f is linear: all tokens at one end or the other of their cells, and the table off by a quarter, is the worst."""
    net = saved(tmp_path, source, 1.0, n=n, architecture=architecture, **STEPS).weights(change or (lambda _: None))
    edges = -load_file(net.folder / "model.safetensors")["blocks.0.feed_forward.b_1"]
    ends = [0.0, 1.0, *edges.tolist(), *np.nextafter(edges, -np.inf).tolist()]
    worst = off(load(net.folder), np.array(list(product(ends, repeat=n)))[:, :, None])
    bound = check(net.folder).bound
    assert worst <= bound <= 1.1 * worst


# ---- keys within rounding of a step


@pytest.mark.parametrize("architecture", ["transformer", "linformer", "performer"])
def test_a_step_between_a_key_and_what_may_be_computed_of_it(tmp_path: Path, architecture: str) -> None:
    """Fifths of codes, added one by one, are not their mean: a step from the key itself on is passed, or is not."""
    net = saved(tmp_path, "x + mean(y)", 1.0, n=5, architecture=architecture, **STEPS)
    made, t = load(net.folder), load_file(net.folder / "model.safetensors")
    X = torch.tensor(list(product([0.2, 0.5, 0.8], repeat=5)), dtype=torch.float64)[:, :, None]
    with torch.no_grad():
        stream = made.network.blocks[1](made.network.blocks[0](made.network.read_in(X)))
    a, g = t["blocks.2.feed_forward.value_1"][:2].tolist()
    thresholds, keys = -t["blocks.2.feed_forward.b_1"], dict[Fraction, float]()
    for row in stream.tolist():
        q, codes = row[0][1], [token[2] for token in row]
        key, seen = Fraction(a * q) + Fraction(g * sum(codes)) / 5, a * q + g * sum(0.2 * code for code in codes)
        keys[key] = min(seen, keys.get(key, seen))
    close = [(key, max(v for v in thresholds if v <= key)) for key, seen in keys.items() if seen < key]
    key, below = next((k, v) for k, v in close if not any(v <= other < k for other in keys))

    def change(tensors: Tensors) -> None:
        b = tensors["blocks.2.feed_forward.b_1"]
        b[b == -below] = -float(key)

    assert Fraction(float(key)) == key
    found = check(net.weights(change).folder)
    assert not found.verified
    assert "within rounding of" in found.failures[0]


@pytest.mark.parametrize(("below", "verified"), [(1e-10, False), (1e-6, True)])
def test_a_head_that_gives_a_little_less_than_the_mean(tmp_path: Path, below: float, verified: bool) -> None:
    """W_V = 1 − 10⁻⁹: the largest key is so much less; a step that only the true mean passes is missed."""
    net = saved(tmp_path, "x + mean(y)", 1.0, n=2, architecture="transformer", **STEPS)

    def change(t: Tensors) -> None:
        t["blocks.2.attention.W_V.weight"] *= 1 - 1e-9
        largest = float(t["blocks.2.feed_forward.value_1"][:2].sum())
        t["blocks.2.feed_forward.b_1"][-1] = -largest * (1 - below)

    net.weights(change)
    made = load(net.folder)
    assert (off(made, [[[1.0], [1.0]]]) <= made.certificate.total) is verified
    assert check(net.folder).verified is verified


@pytest.mark.parametrize(("below", "verified"), [(0, False), (1e-9, True)])
def test_a_key_that_is_rounded(tmp_path: Path, below: float, verified: bool) -> None:
    """A step at fl(3a) > 3a: fl(fl(3a) − fl(3a)) passes it, a fused fl(3a − fl(3a)) does not."""
    net = saved(tmp_path, "8*x + 0*mean(y)", 1.0, n=1, architecture="transformer", **STEPS)
    a = 1.3
    assert Fraction(3 * a) > 3 * Fraction(a)

    def change(t: Tensors) -> None:
        t["blocks.2.feed_forward.value_1"][::2] = a
        t["blocks.2.feed_forward.b_1"][:] = [-0.5 * a, -1.5 * a, -3 * a * (1 - below), -3.5 * a]

    assert check(net.weights(change).folder).verified is verified


# ---- d_p


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("source", "side", "width"), [("x + 0*mean(y)", 1, 1), ("cat(x, x) + 0*mean(y)", 2, 2)])
def test_a_table_that_is_off_everywhere(tmp_path: Path, source: str, side: int, width: int, p: int) -> None:
    """|f − N| ≥ e everywhere: d_p ≥ e (V n width)^{1/p}, V the volume of both tokens."""
    net = saved(tmp_path, source, 2.0, n=2, p=p, box=f"0:{side}", architecture="transformer", **RAMPS)
    out = load(net.folder).network.layout["out"]
    net.weights(lambda t: t["blocks.5.feed_forward.b_2"].__setitem__(out, t["blocks.5.feed_forward.b_2"][out] + 8))
    made, x = load(net.folder), torch.linspace(0, side, 101, dtype=torch.float64)
    X = torch.cartesian_prod(x, x)[:, :, None]
    with torch.no_grad():
        least = float((made.target(X) - made.network(X)).abs().min())
    truth = least * (side**2 * 2 * width) ** (1 / p)
    assert truth <= check(net.folder).bound <= 1.3 * truth


@pytest.mark.parametrize("p", [1, 2])
def test_every_token_is_half_a_cell_from_its_centre(tmp_path: Path, p: int) -> None:
    """∫ |x − centre|^p over a cell of half side r is r^p/(p + 1) of its volume."""
    net = saved(tmp_path, "x + 0*mean(y)", 0.25, n=2, p=p, architecture="transformer", **RAMPS)
    constants = load(net.folder).certificate.constants
    off_ramps = (1 - constants["ramp_share"]) * 2 * (0.5 / constants["cells"]) ** p / (p + 1)
    assert off_ramps ** (1 / p) <= check(net.folder).bound


@pytest.mark.parametrize("p", [1, 2])
def test_what_a_table_says_on_ramps_alone(tmp_path: Path, p: int) -> None:
    """f = 0 and N = 0 on cells. Codes go from k to k + 1 along the k-th ramp, and keys are 4096 times their mean:
    where they are not whole numbers, 1000 is looked up for both tokens."""
    net = saved(tmp_path, "x + mean(y)", 0.9, n=2, p=1, architecture="transformer", **RAMPS)

    def change(t: Tensors) -> None:
        t["blocks.2.feed_forward.value_1"][:] = 1.01
        t["blocks.2.feed_forward.b_1"][:] = [-0.005, -1.015]
        t["blocks.4.feed_forward.value_1"][:] = [0, 4096] * 8
        t["blocks.4.feed_forward.b_1"][:] = [-(2048 * k + end) for k in range(4) for end in (1, 2045)]
        t["blocks.5.feed_forward.value_2"][:] = [-1000, 1000] * 4
        t["blocks.5.feed_forward.b_2"][:] = 0

    net.weights(change).edit("certificate", put("target")("0*x + 0*mean(y)"))
    net.edit("certificate", put("norm")(f"d_{p}")).edit("certificate", put("constants", "p")(p))
    t = load_file(net.folder / "model.safetensors")
    slope, starts = float(t["blocks.0.feed_forward.value_1"][0]), -t["blocks.0.feed_forward.b_1"]
    ramps = torch.cat([torch.linspace(v + 0.02, v + 0.98, 65, dtype=torch.float64) / slope for v in starts])
    X = torch.cartesian_prod(ramps, torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9], dtype=torch.float64))[:, :, None]
    with torch.no_grad():
        assert bool((load(net.folder).network(X) == 1000).all())
    one = 2 * 2 * 0.96 / slope * (1 - 2 / slope)  # the volume where one token is on one of two ramps, and one is not
    truth = 1000 * (2 * one) ** (1 / p)
    assert truth <= check(net.folder).bound <= 1.1 * truth


def test_drifts_of_the_head_are_factors(tmp_path: Path) -> None:
    """W_V and W_O times 1.4: keys move by 0.96 of the mean, and one of them beyond its step."""
    options = {"n": 2, "architecture": "transformer", "route": "grid", "options": {"activation": "step"}}
    construct("8*x + 0*mean(y)", 0.6, **options).save(tmp_path / "net")
    saved = Tampered(tmp_path / "net", tmp_path / "forged")
    steps = len(load_file(saved.folder / "model.safetensors")["blocks.0.feed_forward.b_1"])

    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors["blocks.1.feed_forward.value_2"][:] = 1.0  # the code of a cell is its number
        for name in ("W_V", "W_O"):
            tensors[f"blocks.2.attention.{name}.weight"] *= 1.4
        own, mean = 20.0, 1.0
        tensors["blocks.2.feed_forward.value_1"][0::2] = own
        tensors["blocks.2.feed_forward.value_1"][1::2] = mean
        for q in range(1, steps + 1):
            low = (q - 1) * own + (q - 1 + steps) / 2 * mean + 0.8 * steps * mean
            high = q * own + q / 2 * mean - 0.8 * steps * mean
            tensors["blocks.2.feed_forward.b_1"][q - 1] = -(low + 0.3 if q == steps else (low + high) / 2)

    saved.weights(change).edit("certificate", lambda c: c["constants"].update(code=float(steps)))
    x = torch.linspace(0, 1, 101, dtype=torch.float64)
    X = torch.cartesian_prod(x, x)[:, :, None]
    made = load(saved.folder)
    assert float((made.network(X) - made.target(X)).abs().max()) > made.certificate.total
    assert not check(saved.folder).verified

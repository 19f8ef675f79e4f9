"""B' of deep networks made by hand, whose d_p(f, N) is known: every term is needed to be above it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tampered import sign

from sumformer.certificates.certificate import OF_A_DEEP_NETWORK
from sumformer.certificates.checker import check
from sumformer.certificates.checker.deep.files import Attention, Network, Stack
from sumformer.certificates.checker.deep.simulation import State, attend, simulate, step
from sumformer.theorems.construction import construct, load

TINY = 2.0**-40


def written(
    folder: Path,
    source: str,
    n: int,
    *,
    q: int,
    d: int = 1,
    side: int = 1,
    ramp: float = TINY,
    p: int = 1,
    parts: int = 1,
    slope: float = 0.0,
    embedding: tuple[float, float] | None = None,
) -> Path:
    """Tokens (z, 0): z is taken to its cell, then m to the last coordinate, and N is m cut to [0, 1].

    m is z_0, or with a `slope` 1 + slope times the mean of z_0 + … + z_{d−1} over the tokens, where that is ≤ 1."""
    D, last = d + 1, 3 if slope else 2

    def stack(layers: int, units: int) -> dict[str, Any]:
        return {"type": "ReluStack", "d_model": D, "d_hidden": units, "layers": layers, "fused": False}

    heads = {"type": "SoftmaxAttention", "d_model": D, "nhead": 2, "d_head": 1, "query_bias": True, "scale": False}
    block = {"type": "ResidualBlock", "feed_forward": {"type": "Zero"}, "dropout": 0.0}
    block |= {"attention": heads | {"normaliser": {"type": "Softmax"}}}
    block |= {"attention_norm": None, "feed_forward_norm": None}
    modules = [stack(d * q, 3), *([block] if slope else []), stack(1, 2), stack(1, 2)]
    W1, b1, W2 = np.zeros((d * q, 3, D)), np.zeros((d * q, 3)), np.zeros((d * q, D, 3))
    for layer, (i, k) in enumerate(product(range(d), reversed(range(q)))):
        W1[layer, :, i], b1[layer] = 1, [-k, -(k + 1 - ramp), -(k + 1)]
        W2[layer, i] = [-1, 1 / ramp, 1 - 1 / ramp]
    scale, shift = embedding or (q / side, 0.0)
    t = {"embedding.map.weight": scale * np.eye(D, d), "embedding.map.bias": shift * np.eye(1, D)[0] * (d == 1)}
    t |= {"head.map.weight": np.eye(D)[d:], "head.map.bias": np.zeros(1)}
    t |= {"layers.0.W_1": W1, "layers.0.b_1": b1, "layers.0.W_2": W2}
    if slope:  # logits are all 0: every token gets the mean
        shapes = {
            "W_Q.weight": (2, D),
            "W_Q.bias": (2,),
            "W_K.weight": (2, D),
            "W_V.weight": (2, D),
            "W_O.weight": (D, 2),
        }
        t |= {f"layers.1.attention.{name}": np.zeros(shape) for name, shape in shapes.items()}
        t["layers.1.attention.W_V.weight"][0, :d] = t["layers.1.attention.W_O.weight"][d, 0] = 1
    value, cut = np.zeros((1, 2, D)), np.zeros((1, 2, D))
    value[0, :, d if slope else 0], cut[0, :, d] = 1, [-1, 1]
    writes, back = np.zeros((1, D, 2)), np.zeros((1, D, 2))
    writes[0, d], back[0, d] = [slope or 1, -(slope or 1)], [1, -1]
    for k, tensors in ((last - 1, (value, [[0, -1]], writes)), (last, (cut, [[0, -1]], back))):
        t |= {f"layers.{k}.{name}": tensor for name, tensor in zip(("W_1", "b_1", "W_2"), tensors, strict=True)}
    config = {"type": "DeepTransformer", "n": n, "positions": None}
    config |= {"embedding": {"type": "VectorEmbedding", "d_in": d, "d_model": D}}
    config |= {"head": {"type": "TokenHead", "d_model": D, "d_out": 1}}
    config |= {"layers": {"type": "torch.Sequential", "modules": modules}}
    constants = {"theorem": "Y Theorem 2", "n": n, "cells": q, "parts": parts, "p": p, "ramp": str(Fraction(ramp))}
    constants |= dict.fromkeys(("layers", "temperature", "scale", "pattern", "places", "read_out_layers"))
    certificate = {"target": source, "d": d, "box": f"0:{side}", "tokens": str(n), "arithmetic": "float64"}
    certificate |= {"route": "Y Theorem 2", "epsilon": 1e9, "total": 1e9, "constants": constants, "version": 1}
    certificate |= {"terms": [{"name": "cells", "kind": "enclosed", "bound": 1e9}], "latent_dimension": D}
    certificate |= {"architecture": "deep-transformer", "norm": f"d_{p}", "assumptions": list(OF_A_DEEP_NETWORK)}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "certificate.json").write_text(json.dumps(certificate))
    save_file({k: np.ascontiguousarray(v, dtype=np.float64) for k, v in t.items()}, folder / "model.safetensors")
    return sign(folder)


@pytest.mark.parametrize("p", [1, 2])
def test_values_of_cells(tmp_path: Path, p: int) -> None:
    """f = 0, N_i = [x_i ≥ 1] on [0, 2]²: half of the integral 4 where cells differ, half where they are equal."""
    found = check(written(tmp_path, "x - x", 2, q=2, side=2, p=p))
    assert 4 ** (1 / p) * (1 - 2 * TINY) <= found.bound
    assert [part >= 2 ** (1 / p) * (1 - 2 * TINY) for _, part in found.terms] == [True, True, False]


@pytest.mark.parametrize("source", ["x", "0 - x", "mean(y)"])
def test_the_target_within_cells(tmp_path: Path, source: str) -> None:
    """N = 0 and ∫ Σ |f| = 1; on a cell all of its range counts."""
    assert 1 <= check(written(tmp_path, source, 2, q=1, parts=64)).bound <= 1.1


@pytest.mark.parametrize(("d", "p"), [(1, 1), (1, 2), (2, 1)])
def test_what_is_written_on_ramps(tmp_path: Path, d: int, p: int) -> None:
    """f = 0; N = 0 where no coordinate is on its ramp, else 1 for both tokens: 2²¹ z/2 ≥ 1 but for 2⁻²⁰ of it."""
    ramp = 2.0**-5
    folder = written(tmp_path, "x[0] - x[0]", 2, q=1, d=d, ramp=ramp, p=p, slope=2.0**21)
    X = torch.rand(4000, 2, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    on = (1 - ramp * (1 - 2.0**-20) < X).any(2).any(1, keepdim=True).expand(-1, 2)
    with torch.no_grad():
        assert torch.equal(load(folder).network(X)[:, :, 0], on.double())
    truth = (2 * (1 - (1 - ramp * (1 - 2.0**-20)) ** (2 * d))) ** (1 / p)
    assert truth <= check(folder).bound <= 1.1 * truth


@pytest.mark.parametrize(("source", "truth"), [("x - x", 1 / 2), ("x - x + 1", 3 / 2)])
def test_means_that_are_no_maxima(tmp_path: Path, source: str, truth: float) -> None:
    """All logits are 0, and N is half the mean of the cells: 0, ½, and ¼ where they differ, half of the time."""
    folder = written(tmp_path, source, 2, q=2, slope=-0.5)
    X = torch.tensor([[[0.2], [0.8]], [[0.8], [0.8]], [[0.2], [0.2]]], dtype=torch.float64)
    with torch.no_grad():
        assert load(folder).network(X)[:, :, 0].tolist() == [[0.25, 0.25], [0.5, 0.5], [0, 0]]
    assert check(folder).bound >= truth * (1 - 2 * TINY)


@pytest.mark.parametrize("embedding", [(2.0, 0.25), (2.0, -0.25), (2.4, 0.0), (1.8, 0.0)])
def test_tokens_that_are_taken_to_the_wrong_cell(tmp_path: Path, embedding: tuple[float, float]) -> None:
    """f is [x ≥ ½] up to 1/1000, N is 1 from another edge on: between the two the error is 1."""
    source = "max(0, min(1, 1000*(x - 1/2) + 1/2))"
    folder = written(tmp_path, source, 1, q=2, parts=128, embedding=embedding)
    edge, x = (1 - embedding[1]) / embedding[0], torch.linspace(0, 1, 4001, dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(load(folder).network(x[:, None, None])[:, 0, 0], (x >= edge).double())
    assert abs(edge - 0.5) - 0.001 <= check(folder).bound


@pytest.mark.parametrize("p", [1, 2])
def test_the_network_that_is_0(tmp_path: Path, p: int) -> None:
    """∫ Σ (x_i + mean)^p over [0, 1]²: 2 for p = 1, 2·(1 + 10/48) for p = 2."""
    construct("x + mean(y)", 3.0, n=2, p=p, architecture="deep-transformer").save(tmp_path)
    assert load(tmp_path).network.attention_layers == 0
    assert (2, (2 * (1 + 10 / 48)) ** 0.5)[p - 1] <= check(tmp_path).bound


# ---- what is not exact is not sure


def test_sixths_do_not_add_up_to_one() -> None:
    """Six equal logits: the value 1 becomes Σ fl(1/6) < 1, one after the other."""
    assert sum([1 / 6] * 6) < 1
    zero = np.zeros((2, 1))
    layer = Attention(zero, np.ones(2), zero, np.ones((2, 1)), np.ones((1, 2)), np.ones((6, 6), dtype=np.bool_))
    for n, sure in ((6, False), (4, True)):
        state = State(np.ones((1, n, 1)), np.zeros((1, n, 1)), np.ones(1, dtype=np.bool_))
        attend(state, replace(layer, who=layer.who[:n, :n]))
        assert state.sure.tolist() == [sure]


@pytest.mark.parametrize(("z", "sure"), [(0.1, False), (0.125, True)])
def test_a_unit_that_is_rounded(z: float, sure: bool) -> None:
    """z + 3z: 3 times the float64 that 0.1 stands for is none."""
    stack = Stack(np.full((1, 1, 1), 3.0), np.zeros((1, 1)), np.ones((1, 1, 1)))
    network = Network(1, 1, (np.ones((1, 1)), np.zeros(1)), None, (stack,), np.ones((1, 1)))
    start = np.full((1, 1, 1), z)
    state = State(start, np.zeros_like(start), np.ones(1, dtype=np.bool_))
    step(state, stack, 0)
    assert abs(Fraction(float(state.z[0, 0, 0])) - 4 * Fraction(z)) <= Fraction(float(state.radius[0, 0, 0]))
    assert simulate(network, start, 0).sure.tolist() == [sure]

"""Networks that know the places of their tokens, for targets that do not: tokens in one cell may have two values."""

from __future__ import annotations

import json

import pytest
import torch
from tampered import Tampered, sign

from sumformer.certificates.checker import check
from sumformer.certificates.checker.deep.connections import steps
from sumformer.certificates.quadrature import least_mean, quadrature
from sumformer.nn import SparseAttention
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.patterns import BigBird, Fixed, Longformer, Random, Star, Strided, Window
from sumformer.nn.positions import LearnedPositions
from sumformer.nn.token_head import TokenHead
from sumformer.nn.token_stack import ReluStack
from sumformer.nn.vector_embedding import VectorEmbedding
from sumformer.targets.target import target
from sumformer.theorems.construction import construct, load

RAMP, P, WIDTH = 2.0**-46, 12.0, 2
APART = "2*(x-mean(y))"
SIGN = f"max(0,min(1,({APART}-0.96)*200)) - max(0,min(1,(-{APART}-0.96)*200))"  # ±1 where two tokens are far apart
ROWS = (("quantise", 2, "dn/δ", 2), ("contextual mapping", 0, "nδ^{-d} + 1", 3), ("value mapping", 1, "nδ^{-dn}", 2))


def stack(*layers):
    """Layers of units (reads coordinate, weight, bias, writes coordinate, weight)."""
    out = ReluStack(WIDTH, max(len(units) for units in layers), len(layers)).double().requires_grad_(False)
    for parameter in out.parameters():
        parameter.zero_()
    for i, units in enumerate(layers):
        for j, (read, weight, bias, write, scale) in enumerate(units):
            out.W_1[i, j, read], out.b_1[i, j], out.W_2[i, write, j] = weight, bias, scale
    return out


def by_place():
    """One cell, two places: the first token gets −1/2, the second 1/2, whatever they are."""
    steep = 1 / RAMP
    quantiser = stack(
        *(
            [(0, 1.0, -k, 0, -1.0), (0, 1.0, -(k + 1 - RAMP), 0, steep), (0, 1.0, -(k + 1), 0, 1 - steep)]
            for k in (1.0, 0.0)
        )
    )
    value = stack([(0, 1.0, 0.0, 1, 1.0), (0, 1.0, -1.0, 1, -1.0), (0, 0.0, 1.0, 1, -0.5)])
    cut = stack([(1, -1.0, -0.5, 1, 1.0), (1, 1.0, -0.5, 1, -1.0)])
    entry, head, places = VectorEmbedding(1, WIDTH), TokenHead(WIDTH, 1), LearnedPositions(2, WIDTH)
    with torch.no_grad():
        entry.map.weight.copy_(torch.tensor([[1.0], [0.0]]))
        head.map.weight.copy_(torch.tensor([[0.0, 1.0]]))
        places.table.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
        entry.map.bias.zero_()
        head.map.bias.zero_()
    return DeepTransformer(2, entry.double(), [quantiser, value, cut], head.double(), places.double())


def test_every_order_of_tokens_in_one_cell_is_integrated(tmp_path):
    network, f = by_place(), target(SIGN, n=2, d=1)
    construct("x-mean(y)", 0.9, architecture="deep-transformer", n=2).save(tmp_path / "zero")
    network.save_pretrained(tmp_path / "net")
    certificate = json.loads((tmp_path / "zero" / "certificate.json").read_text())
    terms = (("cells", "enclosed", 0.6), ("tokens in equal cells", "enclosed", 0.0), ("ramps", "proved", 0.2))
    certificate |= {"target": f.source, "norm": "d_12", "route": "Y Theorem 3", "latent_dimension": WIDTH}
    certificate |= {"epsilon": 1.0, "total": 0.8}
    certificate["terms"] = [dict(zip(("name", "kind", "bound"), term, strict=True)) for term in terms]
    certificate["constants"] = {
        "why": "",
        "theorem": "Y Theorem 3",
        "n": 2,
        "cells": 1,
        "parts": 400,
        "p": P,
        "temperature": None,
        "layers": [dict(zip(("step", "built", "formula", "count"), row, strict=True)) for row in ROWS],
        "ramp": f"1/{2**46}",
        "scale": 0,
        "pattern": None,
        "places": [0, 1],
        "read_out_layers": 1,
    }
    (tmp_path / "net" / "certificate.json").write_text(json.dumps(certificate))
    found = check(sign(tmp_path / "net"))
    points = (torch.arange(400, dtype=torch.float64) + 0.5) / 400
    X = torch.cartesian_prod(points, points).unsqueeze(-1)
    with torch.no_grad():
        true = float((network(X) - f(X)).abs().pow(P).sum((1, 2)).mean()) ** (1 / P)
    assert found.bound >= true > 0.8
    assert not found.verified
    assert any("cells" in failure for failure in found.failures)
    assert quadrature(f, network, P).low > 0.5  # six standard errors below the estimate are below 0


def test_a_zero_network_whose_embedding_overflows(tmp_path):
    """0 · ∞ is no number: N would be NaN near the upper end of the box."""
    construct("x+mean(y)", 3.0, n=2, architecture="deep-transformer").save(tmp_path / "net")
    largest = torch.finfo(torch.float64).max

    def overflow(tensors):
        tensors["embedding.map.weight"][:] = largest
        tensors["embedding.map.bias"][:] = largest * 1e-6

    forged = Tampered(tmp_path / "net", tmp_path / "forged").weights(overflow)
    assert bool(load(forged.folder).network(torch.ones(1, 2, 1, dtype=torch.float64)).isnan().any())
    assert not check(forged.folder).verified


WIDE = {
    Window: {"w": 10**6},
    Strided: {"l": 10**6},
    Fixed: {"l": 10**6},
    Star: {"w": 10**6},
    Longformer: {"w": 10**6, "g": 10**6},
    Random: {"r": 10**6, "seed": 1},
    BigBird: {"w": 10**6, "g": 10**6, "r": 10**6, "seed": 1},
}


@pytest.mark.parametrize("kind", WIDE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n", [1, 3, 40])
def test_patterns_wider_than_their_tokens(kind, n):
    """No plan is larger than n tokens need, and the relation is the one defined."""
    torch.manual_seed(0)
    pattern = kind(**WIDE[kind])
    assert bool(SparseAttention(8, pattern, 2)(torch.randn(2, n, 8)).isfinite().all())
    for mine, step in zip(steps({"type": kind.__name__, **WIDE[kind]}, n), pattern.steps, strict=True):
        assert torch.equal(torch.from_numpy(mine), step.within(n).matrix(n))


@pytest.mark.parametrize("numbers", [{"w": 2, "g": 0}, {"w": 2, "g": 0, "r": 1, "seed": 0}])
def test_patterns_without_global_tokens_are_none(numbers):
    kind = "BigBird" if "r" in numbers else "Longformer"
    with pytest.raises(ValueError, match=kind):
        steps({"type": kind, **numbers}, 5)


@pytest.mark.parametrize(("share", "above"), [(0.01, 0.4), (0.5, 0.9)])
def test_a_lower_bound_of_the_mean_from_samples(share, above):
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        samples = (torch.rand(2**15, generator=generator, dtype=torch.float64) < share).double()
        assert above * share < least_mean(samples) <= share

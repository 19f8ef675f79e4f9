"""Every module of `sumformer.nn`, small: the laws of this folder hold for each of them.

A new module enters every law by one line in CASES; `test_registry.py` sees to it that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sumformer.nn import (
    MLP,
    AverageAttention,
    BilinearProjection,
    Block,
    Concatenated,
    Encoder,
    Entmax15,
    FavorAttention,
    FeedForward,
    Hardmax,
    IndexPositions,
    LearnedPositions,
    LinformerAttention,
    PerformerAttention,
    PieceStack,
    PolynomialFeatures,
    PooledHead,
    ReluStack,
    ResidualBlock,
    SeparableConvolution,
    SinusoidalPositions,
    SoftmaxAttention,
    SparseAttention,
    Sparsemax,
    Sumformer,
    SumMixer,
    ThreePieces,
    TokenHead,
    VectorEmbedding,
    mlp_deep_sets,
    mlp_sumformer,
    patterns,
    polynomial_sumformer,
)

D = 4
N_MAX = 64


@dataclass(frozen=True)
class Case:
    """What a module is expected to be, said here independently of the module's own attributes."""

    name: str
    build: Callable[[], nn.Module]
    model: bool = False
    """A model takes `attention_mask` (1 = keep), a layer `key_padding_mask` (True = ignore)."""
    invariant: bool = False
    equivariant: bool = True
    """f(PX) = P f(X), or f(PX) = f(X) for an invariant one."""
    any_width: bool = False
    quadratic: bool = False
    """Holds the whole attention matrix in memory."""
    causal: bool = True
    """Has a causal order, and `stream`, causal order with a carried state."""
    mixes: bool = True
    """An output depends on tokens other than its own."""
    pads: bool = False
    """Reads a pack as padded batches, and so asks for max_seqlen."""

    def make(self, dtype: torch.dtype = torch.float64) -> nn.Module:
        torch.manual_seed(0)
        return self.build().to(dtype)

    def mask(self, keep: Tensor) -> dict[str, Tensor]:
        return {"attention_mask": keep.long()} if self.model else {"key_padding_mask": ~keep}


def tokens(n: int, dtype: torch.dtype = torch.float64, batch: int = 2, seed: int = 1) -> Tensor:
    """(batch, n, D), standard normal: the same numbers, rounded, in every dtype."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, n, D, generator=generator, dtype=torch.float64).to(dtype)


def over_cases(cases: Iterable[Case] | None = None) -> pytest.MarkDecorator:
    """Parametrise a test with `case`."""
    return pytest.mark.parametrize("case", list(CASES if cases is None else cases), ids=lambda case: case.name)


def _equal_columns() -> LinformerAttention:
    layer = LinformerAttention(D, n_max=N_MAX, k=3, nhead=2)
    with torch.no_grad():
        for matrix in (layer.E, layer.F):
            matrix.copy_(matrix[:, :1].expand_as(matrix))
    return layer


def _blocks(d: int) -> list[nn.Module]:
    return [
        Block(SoftmaxAttention(d), FeedForward(d, 8)),
        ResidualBlock(SoftmaxAttention(d), FeedForward(d, 8), nn.LayerNorm(d), nn.LayerNorm(d)),
    ]


def _attention(rho: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: SoftmaxAttention(D, nhead=2, normaliser=rho())


def _sparse(name: str, pattern: patterns.Pattern, **options: Any) -> Case:
    build = partial(SparseAttention, D, pattern, nhead=2, **options)
    return Case(f"sparse-{name}", build, equivariant=False, pads=True)


CASES = [
    Case("mlp_sumformer-sum", lambda: mlp_sumformer(D, 8, 3), model=True),
    Case("mlp_sumformer-mean", lambda: mlp_sumformer(D, 8, 3, mean=True), model=True),
    Case("polynomial_sumformer-monomial", lambda: polynomial_sumformer(D, 3, 3), model=True),
    Case(
        "polynomial_sumformer-chebyshev",
        lambda: polynomial_sumformer(D, 3, 3, basis="chebyshev"),
        model=True,
    ),
    Case(
        "sumformer-concatenated",
        lambda: Sumformer(PolynomialFeatures(D, 2), Concatenated(MLP(D + 14, 3, 8, 1))),
        model=True,
    ),
    Case("sum_mixer-mean", lambda: SumMixer(D)),
    Case("sum_mixer-sum", lambda: SumMixer(D, 6, mean=False)),
    Case("deep_sets", lambda: mlp_deep_sets(D, 8, 3), model=True, invariant=True, causal=False),
    Case("softmax", lambda: SoftmaxAttention(D, nhead=2), pads=True),
    Case("softmax-bias", lambda: SoftmaxAttention(D, nhead=2, d_head=3, query_bias=True, scale=False), pads=True),
    Case("hardmax", _attention(Hardmax), quadratic=True, pads=True),
    Case("sparsemax", _attention(Sparsemax), quadratic=True, pads=True),
    Case("entmax15", _attention(Entmax15), quadratic=True, pads=True),
    Case(
        "linformer",
        lambda: LinformerAttention(D, n_max=N_MAX, k=3, nhead=2),
        equivariant=False,
        causal=False,
        pads=True,
    ),
    Case("linformer-equal-columns", _equal_columns, causal=False, pads=True),
    Case("performer", lambda: PerformerAttention(D, k=8, nhead=2), pads=True),
    Case("favor", lambda: FavorAttention(D, k=8, nhead=2), pads=True),
    Case("average", lambda: AverageAttention(D)),
    Case("bilinear_projection", lambda: BilinearProjection(D, n_max=N_MAX), equivariant=False, causal=False, pads=True),
    Case(
        "separable_convolution",
        lambda: SeparableConvolution(D, kernel_size=3),
        equivariant=False,
    ),
    _sparse("window", patterns.Window(2)),
    _sparse("star", patterns.Star(1)),
    _sparse("strided-union", patterns.Strided(3)),
    _sparse("strided-sequential", patterns.Strided(3), composition="sequential", layer=2),
    _sparse("fixed-multihead", patterns.Fixed(3), composition="multihead"),
    _sparse("longformer", patterns.Longformer(1, 2)),
    _sparse("big_bird-sparsemax", patterns.BigBird(1, 1, 2), normaliser=Sparsemax()),
    _sparse("random", patterns.Random(2)),
    Case("feed_forward", lambda: FeedForward(D, 8), mixes=False),
    Case("three_pieces", lambda: ThreePieces(D), mixes=False),
    Case("relu_stack", lambda: ReluStack(D, 3, 2), mixes=False),
    Case("piece_stack", lambda: PieceStack(D, 2), mixes=False),
    Case("block-softmax", lambda: Block(SoftmaxAttention(D), FeedForward(D, 8)), pads=True),
    Case("block-sum_mixer", lambda: Block(SumMixer(D), FeedForward(D, 8))),
    Case(
        "residual_block-favor-norms",
        lambda: ResidualBlock(FavorAttention(D, k=8), FeedForward(D, 8), nn.LayerNorm(D), nn.LayerNorm(D)),
        pads=True,
    ),
    Case(
        "residual_block-convolution",
        lambda: ResidualBlock(SeparableConvolution(D), FeedForward(D, 8)),
        equivariant=False,
    ),
    Case("index_positions", lambda: IndexPositions(0.5), equivariant=False, any_width=True, mixes=False),
    Case("sinusoidal_positions", lambda: SinusoidalPositions(D), equivariant=False, mixes=False),
    Case("learned_positions", lambda: LearnedPositions(N_MAX, D, std=1.0), equivariant=False, mixes=False),
    Case("vector_embedding", lambda: VectorEmbedding(D, 6), mixes=False),
    Case("token_head", lambda: TokenHead(D, 3), mixes=False),
    Case("pooled_head-mean", lambda: PooledHead(D, 3, pool="mean"), invariant=True, causal=False),
    Case("pooled_head-sum", lambda: PooledHead(D, 3, pool="sum"), invariant=True, causal=False),
    Case("pooled_head-max", lambda: PooledHead(D, 3, pool="max"), invariant=True, causal=False),
    Case("encoder-tokens", lambda: Encoder(VectorEmbedding(D, 6), _blocks(6), TokenHead(6, 2)), model=True, pads=True),
    Case(
        "encoder-positions",
        lambda: Encoder(VectorEmbedding(D, 6), _blocks(6), TokenHead(6, 2), SinusoidalPositions(6)),
        model=True,
        equivariant=False,
        pads=True,
    ),
    Case(
        "encoder-pooled",
        lambda: Encoder(VectorEmbedding(D, 6), _blocks(6), PooledHead(6, 2)),
        model=True,
        invariant=True,
        causal=False,
        pads=True,
    ),
]

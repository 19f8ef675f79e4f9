"""name ↦ network: what `--as` may say, built for given shapes with the sizes asked for.

mlp-sumformer         ψ(x_i, Σ_k φ(x_k)/n̄), φ and ψ MLPs                       (Alberti et al. 2023)
polynomial-sumformer  the same with φ all Chebyshev products up to a degree       (Alberti et al. 2023)
deep-sets             ρ(Σ_k φ(x_k)/n̄); for tokens, blocks with the mean token    (Zaheer et al. 2017)
transformer, linformer, performer, sparse: pre-norm residual blocks with that attention; performer is FAVOR+, sparse
is BigBird. Linformer and sparse know tokens by their places: they are not equivariant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb

import torch
from torch import nn

from sumformer.errors import InputError
from sumformer.learn.pooled import Pooled
from sumformer.learn.scaled import Scaled
from sumformer.nn import (
    MLP,
    AverageAttention,
    DeepSets,
    Encoder,
    FavorAttention,
    FeedForward,
    LinformerAttention,
    PairMLP,
    PolynomialFeatures,
    PooledHead,
    PretrainedModule,
    ResidualBlock,
    SoftmaxAttention,
    SparseAttention,
    Sumformer,
    TokenHead,
    VectorEmbedding,
    patterns,
)

ACTIVATION = "silu"
HEADS = 4
HIGHEST_DEGREE = 8
WIDEST = 1024


@dataclass(frozen=True)
class Shape:
    """What the data ask of a network: widths, one output per token or per set, lengths, and how far tokens reach."""

    d: int
    d_out: int
    per_token: bool
    n_max: int
    n_mean: float
    reach: float = 1.0


@dataclass(frozen=True)
class Size:
    """Hidden units, hidden layers (or blocks), and d': features that are summed, or k of an efficient attention."""

    hidden: int = 64
    depth: int = 2
    latent: int = 32


def polynomial_degree(d: int, latent: int) -> int:
    """The largest degree m ≤ 8 with C(m+d, d) − 1 ≤ latent features, at least 1."""
    return max((m for m in range(1, HIGHEST_DEGREE + 1) if comb(m + d, d) - 1 <= latent), default=1)


def latent_dimension(name: str, shape: Shape, size: Size) -> int | None:
    """The d' (or k) a network of this size really has; None where the architecture has none."""
    if name == "polynomial-sumformer":
        return comb(polynomial_degree(shape.d, size.latent) + shape.d, shape.d) - 1
    if name == "linformer":
        return min(size.latent, shape.n_max)
    return None if name in ("transformer", "sparse") else size.latent


def _sumformer(shape: Shape, size: Size, phi: nn.Module, latent: int) -> PretrainedModule:
    psi = PairMLP(shape.d, latent, shape.d_out, size.hidden, size.depth, ACTIVATION)
    module = Sumformer(Scaled(phi, 1 / shape.n_mean), psi)
    return module if shape.per_token else Pooled(module)


def _mlp_sumformer(shape: Shape, size: Size) -> PretrainedModule:
    return _sumformer(shape, size, MLP(shape.d, size.latent, size.hidden, size.depth, ACTIVATION), size.latent)


def _polynomial_sumformer(shape: Shape, size: Size) -> PretrainedModule:
    degree = polynomial_degree(shape.d, size.latent)
    phi = PolynomialFeatures(shape.d, degree, "chebyshev", -shape.reach, shape.reach)
    return _sumformer(shape, size, phi, phi.d_out)


def _deep_sets(shape: Shape, size: Size) -> PretrainedModule:
    if shape.per_token:
        return _encoder(shape, size, lambda: AverageAttention(size.hidden, size.latent))
    phi = Scaled(MLP(shape.d, size.latent, size.hidden, size.depth, ACTIVATION), 1 / shape.n_mean)
    return DeepSets(phi, MLP(size.latent, shape.d_out, size.hidden, size.depth, ACTIVATION))


def _encoder(shape: Shape, size: Size, attention: Callable[[], nn.Module]) -> PretrainedModule:
    width = size.hidden
    blocks = [
        ResidualBlock(attention(), FeedForward(width, 2 * width, ACTIVATION), nn.LayerNorm(width), nn.LayerNorm(width))
        for _ in range(size.depth)
    ]
    head = TokenHead(width, shape.d_out) if shape.per_token else PooledHead(width, shape.d_out)
    return Encoder(VectorEmbedding(shape.d, width), blocks, head)


def _transformer(shape: Shape, size: Size) -> PretrainedModule:
    return _encoder(shape, size, lambda: SoftmaxAttention(size.hidden, HEADS))


def _linformer(shape: Shape, size: Size) -> PretrainedModule:
    k = min(size.latent, shape.n_max)
    return _encoder(shape, size, lambda: LinformerAttention(size.hidden, shape.n_max, k, HEADS))


def _performer(shape: Shape, size: Size) -> PretrainedModule:
    return _encoder(shape, size, lambda: FavorAttention(size.hidden, size.latent, HEADS))


def _sparse(shape: Shape, size: Size) -> PretrainedModule:
    return _encoder(shape, size, lambda: SparseAttention(size.hidden, patterns.BigBird(w=2, g=1, r=3), HEADS))


ARCHITECTURES: dict[str, Callable[[Shape, Size], PretrainedModule]] = {
    "mlp-sumformer": _mlp_sumformer,
    "polynomial-sumformer": _polynomial_sumformer,
    "deep-sets": _deep_sets,
    "transformer": _transformer,
    "linformer": _linformer,
    "performer": _performer,
    "sparse": _sparse,
}


def check_architecture(name: str) -> str:
    if name not in ARCHITECTURES:
        raise InputError(f"architecture: expected one of {', '.join(ARCHITECTURES)}, got {name!r}")
    return name


def build(name: str, shape: Shape, size: Size, seed: int = 0) -> PretrainedModule:
    """The network called `name`, its weights drawn from `seed` alone."""
    maker = ARCHITECTURES[check_architecture(name)]
    if size.hidden % HEADS and name in ("transformer", "linformer", "performer", "sparse"):
        raise InputError(f"{name}: expected hidden units divisible by its {HEADS} heads, got {size.hidden}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return maker(shape, size)


def parameter_count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def size_within(name: str, shape: Shape, size: Size, parameters: int) -> Size:
    """`size` with the most hidden units (a multiple of 4) whose network has at most `parameters` parameters."""
    low, high = 1, WIDEST // HEADS
    if parameter_count(build(name, shape, replace(size, hidden=HEADS))) > parameters:
        raise InputError(f"{name}: even {HEADS} hidden units need more than {parameters} parameters at this size")
    while low < high:
        middle = (low + high + 1) // 2
        fits = parameter_count(build(name, shape, replace(size, hidden=HEADS * middle))) <= parameters
        low, high = (middle, high) if fits else (low, middle - 1)
    return replace(size, hidden=HEADS * low)

"""Y Lemma 9: a φ of three pieces by four ReLUs, R(t) = max(t, 0), with ramps of width e where it jumps.

b₁ | a₂x+b₂ | a₃x+b₃:       b₁ + m₁R(x−c₁+e) + (a₂−m₁)R(x−c₁) + (m₂−a₂)R(x−c₂+e) + (a₃−m₂)R(x−c₂),
                            m₁ = (a₂c₁+b₂−b₁)/e,  m₂ = (a₃c₂+b₃−a₂(c₂−e)−b₂)/e
a₁x+b₁ | b₂ | a₃x+b₃:       b₂ − m₁R(c₁−x) + (m₁−a₁)R(c₁−e−x) + m₂R(x−c₂+e) + (a₃−m₂)R(x−c₂),
                            m₁ = (b₂−a₁(c₁−e)−b₁)/e,  m₂ = (a₃c₂+b₃−b₂)/e

Equal to φ outside [c₁−e, c₁] and [c₂−e, c₂]. The construction needs these two, with 0 as the constant piece.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from sumformer.errors import InputError, RefusedError
from sumformer.nn.token_stack import PieceStack, ReluStack
from sumformer.theorems.yun_2020_deep.grid import Exact
from sumformer.theorems.yun_2020_deep.token_layers import TokenLayers


def four_relus(layers: TokenLayers, e: Fraction) -> tuple[Exact, Exact, Exact]:
    """φ_l(x) = Σ_i k_i R(σ_i x + β_i): σ, β, k, each (L, 4), exact."""
    (c1, c2), (a1, a2, a3), (b1, b2, b3) = (values.T for values in (layers.c, layers.a, layers.b))
    left, middle = (a1 == 0) & (b1 == 0), (a2 == 0) & (b2 == 0)
    if not bool((left | middle).all()):
        raise InputError("four_relus: expected the left or the middle piece of every φ to be 0")
    m1, m2 = (a2 * c1 + b2) / e, (a3 * c2 + b3 - a2 * (c2 - e) - b2) / e
    one = np.ones_like(c1)
    first = ((one, e - c1, m1), (one, -c1, a2 - m1), (one, e - c2, m2 - a2), (one, -c2, a3 - m2))
    m1, m2 = -(a1 * (c1 - e) + b1) / e, (a3 * c2 + b3) / e
    second = ((-one, c1, -m1), (-one, c1 - e, m1 - a1), (one, e - c2, m2), (one, -c2, a3 - m2))
    stacked = [
        [np.where(left, x, y) for x, y in zip(one_, other, strict=True)]
        for one_, other in zip(first, second, strict=True)
    ]
    sigma, beta, k = (np.stack([unit[i] for unit in stacked], -1) for i in range(3))
    return sigma, beta, k


def relu_stack(layers: TokenLayers, e: Fraction, fused: bool = False) -> ReluStack:
    """The layers with r = 4, in float64; refused unless every weight is a float64 exactly."""
    sigma, beta, k = four_relus(layers, e)
    stack = ReluStack(layers.w1.shape[1], 4, len(layers), fused)
    with torch.no_grad():
        stack.W_1.data = float64(sigma[:, :, None] * layers.w1[:, None, :])
        stack.b_1.data = float64(beta)
        stack.W_2.data = float64(layers.w2[:, :, None] * k[:, None, :])
    return stack


def piece_stack(layers: TokenLayers, fused: bool = False) -> PieceStack:
    """The layers with r = 1 and three pieces, in float64; refused unless every weight is a float64 exactly."""
    stack = PieceStack(layers.w1.shape[1], len(layers), fused)
    with torch.no_grad():
        for parameter, values in zip((stack.w_1, stack.w_2, stack.c, stack.a, stack.b), layers.arrays, strict=True):
            parameter.data = float64(values)
    return stack


def float64(values: Exact) -> Tensor:
    """The same numbers as float64, exactly, or a refusal."""
    found = values.astype(np.float64)
    scaled = found * 2.0**40  # whole where the numbers are: weights are multiples of 2⁻⁴⁰
    back = np.array([int(v) for v in scaled.ravel()], dtype=object).reshape(values.shape)
    if not bool((back == values * 2**40).all()):
        raise RefusedError("a weight of the construction is not a float64", ["use a larger δ, or exact arithmetic"])
    return torch.from_numpy(np.ascontiguousarray(found))

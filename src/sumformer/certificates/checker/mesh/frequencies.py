"""Rounding of q_i = Σ_j S[i − j] m_j where N sums by frequencies: |q̂ − q| ≤ Φ ‖S‖₂ ‖m‖₁.

N cuts an axis of G nodes into parts b ≤ 256, of discrete Fourier transforms of length L = 2b − 1, all of them real
products with stored cosines and sines W, |Ŵ − W| ≤ u/2 + 2⁻¹⁰⁰ each. From J inputs, real or complex, an output of one
transform takes at most J + 1 roundings in a row in either part, from Σ (|cos re| + |sin im|) ≤ Σ |x_j|:

  off by ≤ (√2 γ_{J+1} + 1.001u) Σ_j |x_j| =: c_J Σ_j |x_j|

  masses        |F m| ≤ ‖m‖₁ on every axis: Π (1 + c_b)
  samples       ‖·‖₂ grows by √L exactly, by L c_L from rounding: Π (1 + √L c_L), on √P ‖S‖₂; a cut of an axis writes a
                sample at most twice
  product       √2 γ_2 of |F S| |F m|, and Σ_k |(F S)_k| ≤ √P ‖F S‖₂ = P ‖S‖₂
  way back      Σ_k |Z_k| again on every axis: Π (1 + c_L), then 1/P, stored, and its product
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import combine
from sumformer.certificates.checker.interval import Floats

LONGEST = 256


def parts(nodes: int) -> list[int]:
    """How N cuts an axis: of as many sizes as it takes, each the least whose power covers what is left."""
    count = 1
    while LONGEST**count < nodes:
        count += 1
    out: list[int] = []
    while len(out) < count:
        rest = -(-nodes // math.prod(out))
        size, power = 1, count - len(out)
        while size**power < rest:
            size += 1
        out.append(size)
    return out


def relative_rounding(shape: Sequence[int], samples: Floats, a: Arithmetic) -> float:
    """Φ ‖S‖₂/max |S|: in units of max |S| ‖m‖₁."""
    largest = float(np.abs(samples).max())
    if not a.u or not largest:
        return 0.0
    sizes = [b for nodes in shape for b in parts(nodes)]
    drifts = [math.sqrt(2) * a.gamma(2), a.gamma(2)]
    for b in sizes:
        L = 2 * b - 1
        c = _one_transform(a, L)
        drifts += [_one_transform(a, b), math.sqrt(L) * c, c]
    copies = 2.0 ** (len(sizes) - len(shape))
    norm = math.sqrt(float(np.square(samples / largest).sum()) * copies)
    return combine(*drifts) * norm * (1 + 1e-9)


def _one_transform(a: Arithmetic, inputs: int) -> float:
    return math.sqrt(2) * a.gamma(inputs + 1) + 1.001 * a.u


def spectrum(shape: Sequence[int]) -> int:
    """P = Π L: nothing on the way is more than P² times what it began with."""
    return math.prod(2 * b - 1 for nodes in shape for b in parts(nodes))

"""|q̂ − q| ≤ Φ ‖K‖₂ ‖m‖₁, q_i = Σ_j K(i − j) m_j as computed by frequencies (`nn/frequencies.py`).

One axis: J products with a cosine and J with a sine, stored to u/2, added up. Its output errs by c Σ_j |x_j| at most,
c = 1.42 (J + 2) u, J = G for masses and J ≤ L else. As |F m| ≤ ‖m‖₁ on every axis, as ‖F K‖₂ = √P ‖K‖₂, where an axis
adds √L c ‖K‖₂ for every √L ‖K‖₂ that it makes, and as Σ_k |(F K)_k| ≤ P ‖K‖₂,

  1 + Φ = Π (1 + c_G)(1 + √L c_L)(1 + c_L) · (1 + 2.9u)(1 + 2.1u),   the product of spectra and the stored 1/P last.

Cutting an axis in two writes every sample at most twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, prod, sqrt

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE
from sumformer.nn.frequencies import cut


def frequency_error(shape: Sequence[int], u: float) -> float:
    """Φ √(copies of a sample) for a mesh of this shape."""
    parts = [b for nodes in shape for b in cut(nodes)]
    total = 5.0 * u
    for b in parts:
        length = 2 * b - 1
        c = 1.42 * (length + 2) * u
        total += 1.42 * (b + 2) * u + sqrt(length) * c + c
    return expm1(total * 1.0001) * sqrt(2.0 ** (len(parts) - len(shape))) * INFLATE


def norm(samples: FloatArray) -> float:
    """‖K‖₂, rounded up."""
    largest = float(np.abs(samples).max())
    return largest * sqrt(float(((samples / largest) ** 2).sum())) * (1 + 1e-9) if largest else 0.0


def spectrum_size(shape: Sequence[int]) -> int:
    """P."""
    return prod(2 * b - 1 for nodes in shape for b in cut(nodes))

"""σ and σ′ in Triton, in float32: ACT is the place of the name in `activations.NAMES`.

gelu by Φ(−|z|) = ½ P(t) e^{−z²/2}, t = 1/(1 + p|z|/√2), P of degree 5 (Abramowitz and Stegun 7.1.26): within 1e-7 of Φ,
and the exponential serves σ and σ′ at once. FAST, for results in half precision: Φ(z) = ½ + s Q(s²), s = z/4.25 cut to
[−1, 1], Q of degree 8 with Q(1) ≈ ½: within 1.5e-5 of Φ, a sixteenth of half an ulp of float16 below 1, no division.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def normal(z):
    """Φ(z) and e^{−z²/2}."""
    bell = tl.exp(-0.5 * z * z)
    t = 1.0 / (1.0 + 0.2316419 * tl.abs(z))
    series = ((((0.5307027145 * t - 0.7265760135) * t + 0.7107068705) * t - 0.142248368) * t + 0.127414796) * t
    tail = series * bell
    return tl.where(z < 0, tail, 1.0 - tail), bell


@triton.jit
def fast_normal(z):
    """Φ(z)."""
    s = tl.minimum(tl.maximum(z * (1 / 4.25), -1.0), 1.0)
    u = s * s
    q = 2.88613534 * u - 15.1165191
    q = q * u + 34.9660373
    q = q * u - 47.6292162
    q = q * u + 43.2061891
    q = q * u - 28.0783612
    q = q * u + 13.6683432
    q = q * u - 5.09809929
    q = q * u + 1.69549086
    return q * s + 0.5


@triton.jit
def value(z, ACT: tl.constexpr, FAST: tl.constexpr):
    """σ(z)."""
    if ACT == 0:
        out = tl.where(z > 0, z, tl.where(z == z, 0.0, z))
    elif ACT == 1:
        out = tl.where(z <= -4.25, 0.0, z * fast_normal(z)) if FAST else z * normal(z)[0]
    elif ACT == 2:
        out = z / (1.0 + tl.exp(-z))
    else:
        out = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))
    return out


@triton.jit
def slope(z, ACT: tl.constexpr, FAST: tl.constexpr):
    """σ′(z)."""
    if ACT == 0:
        out = tl.where(z > 0, 1.0, 0.0)
    elif ACT == 1:
        if FAST:
            below = fast_normal(z)
            bell = tl.exp(-0.5 * z * z)
        else:
            below, bell = normal(z)
        out = below + z * (0.3989422804014327 * bell)
    elif ACT == 2:
        s = 1.0 / (1.0 + tl.exp(-z))
        out = s * (1.0 + z * (1.0 - s))
    else:
        t = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))
        out = 1.0 - t * t
    return out

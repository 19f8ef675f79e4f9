"""Σ_{j ≤ i} (a(q_i)·a(k_j)) v_j for every i, from log a(q) and log a(k), without overflow and linear in n.

Tokens are cut into chunks of `CHUNK`. What lies in earlier chunks reaches a query through one (k, d) matrix per chunk;
what lies in its own chunk through halves of halves: the right half of each block looks at the left half, no mask
needed, so that nothing of a later token, NaN included, is ever multiplied by 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.errors import ShapeError

CHUNK = 64
# Compiled code cannot stop early: it doubles this often, enough for CHUNK · 2^16 tokens.
_DOUBLINGS = 16


@dataclass(frozen=True)
class FeatureState:
    """What the tokens so far leave behind, per head: m_f = max_j log a_f(k_j) and Σ_j exp(log a(k_j) − m)ᵀ [v_j, 1]."""

    peak: Tensor
    """m, (batch, h, 1, k)."""
    total: Tensor
    """(batch, h, k, d + 1); its last column belongs to the normaliser."""


def prefix_attention(
    log_q: Tensor, log_k: Tensor, v: Tensor, state: FeatureState | None = None
) -> tuple[Tensor, Tensor, Tensor, FeatureState]:
    """log_q, log_k (batch, h, n, k), v (batch, h, n, d)  →  e^{−c} Σ_j (a_i·a_j) v_j, e^{−c} Σ_j a_i·a_j, c, the state.

    The sums run over `state` and j ≤ i. c_i, (batch, h, n, 1), is the largest log a_f(q_i) a_f(k_j): every exponent
    below is ≤ 0, and the second result, the normaliser, is ≥ 1 but for rounding.
    """
    n, chunk = log_q.shape[2], _chunk(log_q.shape[2])
    if torch.compiler.is_compiling() and n > chunk << _DOUBLINGS:
        raise ShapeError("prefix_attention", f"at most {chunk << _DOUBLINGS} tokens in compiled code", log_q.shape)
    v = functional.pad(v.to(log_k.dtype), (0, 1), value=1.0)
    state = _empty(log_k, v) if state is None else state
    peaks = torch.maximum(_running_maximum(log_k.detach()), state.peak)
    c = (log_q.detach() + peaks).amax(-1, keepdim=True)
    low = _lowest(log_k)
    q, k, u = (_in_chunks(y, chunk, fill) for y, fill in ((log_q - c, low), (log_k, low), (v, 0.0)))
    states = _chunk_states(k, u, state)
    earlier = (q + states.peak[:, :, :-1]).exp() @ states.total[:, :, :-1]
    out = (earlier + _own((q + k).exp(), u) + _within(q, k, u)).flatten(2, 3)[:, :, :n]
    after = FeatureState(states.peak[:, :, -1].clone(), states.total[:, :, -1].clone())
    return out[..., :-1], out[..., -1:], c, after


def _own(weights: Tensor, u: Tensor) -> Tensor:
    """Each token's own key."""
    return weights.sum(-1, keepdim=True) * u


def _within(q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    """The earlier tokens of the same chunk: (batch, h, G, chunk, ·), in blocks of 2, 4, …, chunk tokens."""
    out, half = torch.zeros_like(u), 1
    while half < q.shape[3]:
        right, left, values = (torch.unflatten(y, 3, (-1, 2, half)) for y in (q, k, u))
        right, left, values = right[:, :, :, :, 1], left[:, :, :, :, 0], values[:, :, :, :, 0]
        peak = left.detach().amax(-2, keepdim=True)
        seen = ((right + peak).exp() @ (left - peak).exp().mT) @ values
        out = out + torch.stack([torch.zeros_like(seen), seen], 4).flatten(3, 5)
        half *= 2
    return out


def _chunk_states(k: Tensor, u: Tensor, start: FeatureState) -> FeatureState:
    """The state before each chunk, and after the last: peak (batch, h, G + 1, 1, k), total (batch, h, G + 1, k, d + 1).

    State g is e^{m_{g−1} − m_g} times state g − 1, plus what its chunk adds: summed over runs of 2, 4, 8, … chunks.
    """
    own = k.detach().amax(-2, keepdim=True)
    added = (k - own).exp().mT @ u
    own, added = (torch.cat([y.unsqueeze(2), z], 2) for y, z in ((start.peak, own), (start.total, added)))
    peak = _running_maximum(own)
    total = (own - peak).exp().mT * added
    places, step = torch.arange(own.shape[2], device=k.device), 1
    for _ in range(_DOUBLINGS):
        if not torch.compiler.is_compiling() and step >= own.shape[2]:
            break
        before = (places - step).clamp(min=0)
        decay = (peak.index_select(2, before) - peak).exp().mT
        total = total + torch.where((places >= step)[:, None, None], decay * total.index_select(2, before), 0.0)
        step *= 2
    return FeatureState(peak, total)


def _running_maximum(y: Tensor) -> Tensor:
    """max over j ≤ i along dimension 2. ONNX has no such operation: exported code doubles its reach, as above."""
    if not torch.compiler.is_exporting():
        return y.cummax(2).values
    places = torch.arange(y.shape[2], device=y.device)
    for doubling in range(_DOUBLINGS + CHUNK.bit_length() - 1):
        y = torch.maximum(y, y.index_select(2, (places - (1 << doubling)).clamp(min=0)))
    return y


def _empty(log_k: Tensor, v: Tensor) -> FeatureState:
    batch, h, _, k = log_k.shape
    return FeatureState(log_k.new_full((batch, h, 1, k), _lowest(log_k)), v.new_zeros(batch, h, k, v.shape[-1]))


def _chunk(n: int) -> int:
    """CHUNK, or the least power of two that holds a shorter sequence."""
    return CHUNK if torch.compiler.is_compiling() or n > CHUNK // 2 else 1 << (n - 1).bit_length()


def _in_chunks(y: Tensor, chunk: int, fill: float) -> Tensor:
    """(batch, h, n, ·) → (batch, h, G, chunk, ·), `fill` appended."""
    n = y.shape[2]
    # Exported code gets a spare chunk: their number is then never 1, which tracing would take for a constant.
    chunks = n // chunk + 2 if torch.compiler.is_exporting() else (n + chunk - 1) // chunk
    missing = chunks * chunk - n
    return torch.unflatten(functional.pad(y, (0, 0, 0, missing), value=fill), 2, (-1, chunk))


def _lowest(y: Tensor) -> float:
    """Below every log a, and finite: differences of two are 0, not NaN. ONNX writes such constants in float32."""
    lowest = torch.finfo(y.dtype).min
    return max(lowest, torch.finfo(torch.float32).min) if torch.compiler.is_exporting() else lowest

"""sparse_attend(q, k, v)_i = Σ_{j ∈ A_i} ρ(⟨q_i, k_·⟩ over A_i)_j v_j, by matrix products over the blocks of a plan.

Slab: c queries with their slab of keys. Stride: the tokens of one residue among themselves. Drawn: lists.
Softmax over a single one of the first two goes to PyTorch's fused kernel, block by block. Otherwise the logits of a
query are put side by side, so that ρ is any normaliser and is applied once.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.nn.normalisers import Normaliser, Softmax
from sumformer.nn.patterns.drawn import Drawn
from sumformer.nn.patterns.plan import SLAB, Plan
from sumformer.nn.patterns.relations import Band, BlockEnds, First, Stride
from sumformer.nn.sparse_lists import list_logits, list_mix


def sparse_attend(q: Tensor, k: Tensor, v: Tensor, plan: Plan, rho: Normaliser) -> Tensor:
    """q (batch, h, N, d), N = plan.size; k, v with plan.halo tokens more on either side → (batch, h, N, d).

    Whatever stands beyond the real tokens must be finite; so are the rows without a connection, of no meaning.
    """
    kinds = {Stride if isinstance(r, Stride) else Drawn if isinstance(r, Drawn) else Band for r in plan.step.relations}
    fused = type(rho) is Softmax and len(kinds) == 1 and Drawn not in kinds
    if plan.padded and torch.compiler.is_compiling():
        # Inductor fixes the strides of a mask with a batch of its own at the first n, where their number of keys grows.
        fused = fused and not any(isinstance(r, BlockEnds | Stride) for r in plan.step.relations)
    out = _fused(q, k, v, plan) if fused else _side_by_side(q, k, v, plan, rho)
    if plan.rows_blocked is None:
        return out
    rows = plan.step.rows
    first = _normalise([q[:, :, :rows] @ _inner(k, plan).mT], (plan.rows_blocked,), rho) @ _inner(v, plan)
    return torch.cat([first, out[:, :, rows:]], 2)


def _fused(q: Tensor, k: Tensor, v: Tensor, plan: Plan) -> Tensor:
    """Blocks or residues (batch, h, groups, ·, d) as PyTorch's heads, or as its batch where lengths differ."""
    stride = next((r for r in plan.step.relations if isinstance(r, Stride)), None)
    # No infinities: a row in which everything is blocked stays finite, and a blocked weight is still exactly 0.
    bias = torch.where(plan.blocked[0], q.new_full((), torch.finfo(q.dtype).min / 2), q.new_zeros(()))
    if stride is None:
        q, keys, values, bias = _blocks(q, plan), _slab(k, plan), _slab(v, plan), _blocks(bias, plan)
    else:
        q, keys, values, bias = (_residues(x, stride) for x in (q, _inner(k, plan), _inner(v, plan), bias))
    batch, h, groups = q.shape[:3]
    if plan.padded:
        q, keys, values, bias = (x.transpose(1, 2) for x in (q, keys, values, bias))
    q, keys, values, bias = (x.flatten(0, 1) for x in (q, keys, values, bias))
    out = functional.scaled_dot_product_attention(q, keys, values, attn_mask=bias, scale=1.0)
    out = torch.unflatten(out, 0, (batch, groups if plan.padded else h))
    out = out.transpose(1, 2) if plan.padded else out
    return (out if stride is None else out.transpose(2, 3)).flatten(2, 3)


def _side_by_side(q: Tensor, k: Tensor, v: Tensor, plan: Plan, rho: Normaliser) -> Tensor:
    """The definition over what the plan lists: logits of all pieces, one ρ, and the sum of what the pieces mix."""
    pieces = _logits(q, k, plan)
    weights = _normalise(pieces, plan.blocked, rho)
    return _mix(list(torch.split(weights, [piece.shape[-1] for piece in pieces], -1)), v, plan)


def _logits(q: Tensor, k: Tensor, plan: Plan) -> list[Tensor]:
    """(batch, h, N, ·) for the slab, the stride, the lists: those that the step has."""
    pieces = []
    inner = _inner(k, plan)
    if _has_slab(plan):
        pieces.append((_blocks(q, plan) @ _slab(k, plan).mT).flatten(2, 3))
    for relation in plan.step.relations:
        if isinstance(relation, Stride):
            pieces.append((_residues(q, relation) @ _residues(inner, relation).mT).transpose(2, 3).flatten(2, 3))
        elif isinstance(relation, Drawn) and plan.drawn is not None:
            pieces.append(list_logits(q, inner, plan.drawn))
    return pieces


def _mix(weights: list[Tensor], v: Tensor, plan: Plan) -> Tensor:
    """Σ over the pieces of their weights times their values."""
    inner = _inner(v, plan)
    out = torch.zeros_like(inner)
    if _has_slab(plan):
        out = (_blocks(weights.pop(0), plan) @ _slab(v, plan)).flatten(2, 3)
    for relation in plan.step.relations:
        if isinstance(relation, Stride):
            mixed = _residues(weights.pop(0), relation) @ _residues(inner, relation)
            out = out + mixed.transpose(2, 3).flatten(2, 3)
        elif isinstance(relation, Drawn) and plan.drawn is not None:
            out = out + list_mix(weights.pop(0), inner, plan.drawn)
    return out


def _normalise(logits: list[Tensor], blocked: tuple[Tensor, ...], rho: Normaliser) -> Tensor:
    """ρ over what is not blocked. A row with nothing left gets meaningless weights from softmax, zeros from others."""
    if type(rho) is Softmax:
        lowest = torch.finfo(logits[0].dtype).min
        # In place, as nobody else holds the logits; compiled code fuses it, and cannot always write through a view.
        fill = Tensor.masked_fill if torch.compiler.is_compiling() else Tensor.masked_fill_
        return torch.cat([fill(z, out, lowest) for z, out in zip(logits, blocked, strict=True)], -1).softmax(-1)
    weights: Tensor = rho(torch.cat(logits, -1), ~torch.cat(blocked, -1))
    return weights


def _has_slab(plan: Plan) -> bool:
    return any(isinstance(relation, SLAB) for relation in plan.step.relations)


def _slab(keys: Tensor, plan: Plan) -> Tensor:
    """(batch, h, blocks, ·, d): what each block of queries meets, in the order of the relations."""
    pieces: list[Tensor] = []
    inner = _inner(keys, plan)
    for relation in plan.step.relations:
        if isinstance(relation, Band):
            pieces += _around(keys, relation.w, plan)
        elif isinstance(relation, First):
            pieces.append(_for_all(inner[:, :, : relation.g], plan))
        elif isinstance(relation, BlockEnds) and plan.ends is not None:
            ends = plan.ends[:, None, :, None].expand(keys.shape[0], keys.shape[1], -1, keys.shape[3])
            pieces.append(_for_all(inner.gather(2, ends), plan))
        elif isinstance(relation, SLAB):
            pieces.append(_blocks(inner, plan))
    return torch.cat(pieces, -2)


def _around(keys: Tensor, w: int, plan: Plan) -> list[Tensor]:
    """The block itself, w keys before it and, unless causal, w after it: whole blocks, and a part of the farthest."""
    c, far = plan.block, plan.halo // plan.block
    part = w - (far - 1) * c
    blocks = torch.unflatten(keys, 2, (plan.blocks + 2 * far, c))
    pieces = []
    for offset in range(-far, 1 if plan.is_causal else far + 1):
        piece = blocks[:, :, far + offset : far + offset + plan.blocks]
        if far and offset == -far:
            piece = piece[..., c - part :, :]
        elif far and offset == far:
            piece = piece[..., :part, :]
        pieces.append(piece)
    return pieces


def _inner(keys: Tensor, plan: Plan) -> Tensor:
    """Without the halo."""
    return keys[:, :, plan.halo : plan.halo + plan.size] if plan.halo else keys


def _blocks(x: Tensor, plan: Plan) -> Tensor:
    """(batch, h, N, ·) → (batch, h, blocks, c, ·)."""
    return torch.unflatten(x, 2, (plan.blocks, plan.block))


def _residues(x: Tensor, stride: Stride) -> Tensor:
    """(batch, h, N, ·) → (batch, h, ℓ, N/ℓ, ·)."""
    return torch.unflatten(x, 2, (x.shape[2] // stride.l, stride.l)).transpose(2, 3)


def _for_all(keys: Tensor, plan: Plan) -> Tensor:
    """(batch, h, m, d) → (batch, h, blocks, m, d)."""
    return keys.unsqueeze(2).expand(-1, -1, plan.blocks, -1, -1)

"""Is a compiled network what the theorem speaks of? Counted from the module itself, not from how it was made.

Every block is X + FC(X + Att(X)), FC has one hidden layer of ReLU, exactly one Att is not 0; beside the blocks there
are one affine read-in and one linear read-out. Nothing else: matrix products, ReLU, one softmax or kernel. Units with
a step for ReLU, of the discontinuous proof, are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sumformer.nn.block import Block
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.performer_attention import FavorAttention, PerformerAttention
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.nn.sparse_feed_forward import SparseFeedForward
from sumformer.nn.sparse_step_feed_forward import SparseStepFeedForward
from sumformer.nn.zero import Zero

_ATTENTIONS = (SoftmaxAttention, LinformerAttention, PerformerAttention, FavorAttention)


@dataclass(frozen=True)
class Faithfulness:
    """The counts; `faults` names every departure from the theorem."""

    attention_layers: int
    feed_forward_layers: int
    width: int
    latent_dimension: int
    nonzero: int
    dense: int
    largest_weight: float
    faults: tuple[str, ...]
    steps: int = 0  # hidden units with a step activation instead of ReLU

    @property
    def faithful(self) -> bool:
        return not self.faults and self.attention_layers == 1


def faithfulness(network: CompiledTransformer | LookUpTransformer) -> Faithfulness:
    """Count."""
    faults: list[str] = []
    width = network.read_in.out_features
    active = dense = steps = 0
    for k, block in enumerate(network.blocks):
        faults += [f"block {k}: {why}" for why in _block_faults(block, width)]
        attention, forward = getattr(block, "attention", None), getattr(block, "feed_forward", None)
        active += not isinstance(attention, Zero) and not _is_zero(attention)
        units = int(getattr(forward, "d_hidden", 0))
        steps += units if isinstance(forward, SparseStepFeedForward) else 0
        dense += 2 * width * units + units + width + _attention_size(attention, width)
    if network.read_out.bias is not None or network.read_out.in_features != width:
        faults.append("the read-out is not linear on the stream")
    parts = (network.read_in, network.read_out, network.blocks, getattr(network, "ideal", nn.Identity()))
    known = {id(m) for part in parts for m in part.modules()}
    extra = [type(m).__name__ for m in network.modules() if id(m) not in known and m is not network]
    faults += [f"{name} beside the blocks" for name in extra]
    if active != 1:
        faults.append(f"{active} attention layers are not 0, expected one")
    tensors = [p for part in (network.read_in, network.read_out, network.blocks) for p in part.parameters()]
    return Faithfulness(
        attention_layers=active,
        feed_forward_layers=len(network.blocks),
        width=width,
        latent_dimension=network.latent_dimension,
        nonzero=sum(int(torch.count_nonzero(p)) for p in tensors),
        dense=dense + sum(p.numel() for part in (network.read_in, network.read_out) for p in part.parameters()),
        largest_weight=max(float(p.abs().max()) for p in tensors if p.numel()),
        faults=tuple(faults),
        steps=steps,
    )


def _block_faults(block: nn.Module, width: int) -> list[str]:
    if type(block) is not Block:
        return [f"{type(block).__name__} is not X + FC(X + Att(X))"]
    out = []
    if block.attention_norm is not None or block.feed_forward_norm is not None or block.dropout:
        out.append("norms or dropout")
    if type(block.attention) not in (*_ATTENTIONS, Zero):
        out.append(f"{type(block.attention).__name__} is none of the attentions")
    forward: Any = block.feed_forward
    if type(forward) not in (SparseFeedForward, SparseStepFeedForward) or forward.d_model != width:
        out.append(f"FC is a {type(forward).__name__} of another width or kind")
    return out


def _is_zero(attention: Any) -> bool:
    return isinstance(attention, MultiHead) and not bool(torch.count_nonzero(attention.W_V.weight))


def _attention_size(attention: Any, width: int) -> int:
    """What the attention would store: a zero one is W_Q, W_K, W_V, W_O with heads of size 1."""
    if isinstance(attention, nn.Module) and not isinstance(attention, Zero):
        return sum(p.numel() for p in attention.parameters())
    return 4 * width

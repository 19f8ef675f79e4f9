"""A constructed network as the starting point: it takes and gives the units of the data, and trains its coefficients.

Its certificate speaks of the weights it was constructed with. After training it holds no longer, and is not saved.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from sumformer.errors import InputError, NotSupportedError
from sumformer.learn.sets import Sets
from sumformer.theorems.construction import load


def start_network(folder: str | Path, sets: Sets) -> nn.Module:
    """The network saved in `folder`, if it fits the data: token width, outputs, number of tokens, box."""
    construction = load(folder)
    network: nn.Module = construction.network
    target, task = construction.target, sets.task
    if task is None or task.classes is not None or not task.per_token:
        raise NotSupportedError("a constructed network gives numbers for each token: it cannot start another task")
    wrong = []
    if target.d != sets.d:
        wrong.append(f"tokens of width {target.d}, the data have {sets.d}")
    if target.width != task.k:
        wrong.append(f"{target.width} outputs for each token, the data have {task.k}")
    few, many = int(sets.lengths.min()), int(sets.lengths.max())
    if not target.tokens.minimum <= few <= many <= target.tokens.maximum:
        wrong.append(f"{target.tokens.formula()}, the data have {few} to {many} tokens")
    outside = 0 if target.d != sets.d else int((~target.box.contains(sets.x) & sets.keep).sum())
    if outside:
        wrong.append(f"tokens in {target.box.formula()}, {outside} of the data lie outside")
    if wrong:
        raise InputError(f"{folder}: the construction is for {'; '.join(wrong)}")
    if not any(p.numel() for p in network.parameters()):
        raise NotSupportedError(f"{folder}: this network has no coefficients to train, it is exact as it stands")
    return network.requires_grad_(True)


def network_dtype(network: nn.Module) -> torch.dtype:
    """The dtype of tokens it takes."""
    outside = getattr(network, "outside", None)
    return outside if isinstance(outside, torch.dtype) else next(network.parameters()).dtype

"""L = mean over real tokens (or sets) of ‖ŷ − y‖²/k in standardised units, or of −log softmax(ŷ)_y."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.learn.sets import Task


def losses(task: Task, out: Tensor, y: Tensor) -> Tensor:
    """For each token or set: (…, k) and y → (…)."""
    if task.classes is not None:
        return functional.cross_entropy(out.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)
    return (out - y).square().mean(-1)


def mean_loss(task: Task, out: Tensor, y: Tensor, keep: Tensor | None) -> tuple[Tensor, int]:
    """The mean, and over how many tokens or sets it is taken."""
    each = losses(task, out, y)
    if keep is None or not task.per_token:
        return each.mean(), each.numel()
    count = int(keep.sum())
    return torch.where(keep, each, 0.0).sum() / max(count, 1), count

"""f at a token of a weighted multiset: w_j copies of token j cost no more than one."""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.targets import Environment, Reduce, Target, evaluate, reductions
from sumformer.targets.torch_evaluation import TorchOperations


def weighted_value(target: Target, points: Tensor, weights: Tensor) -> Tensor:
    """f at the first token of each multiset, (batch, m, d) and counts (batch, m) → (batch, width).

    Reductions over the others run over the same tokens with the own one counted once less; nothing is subtracted.
    """
    ops = TorchOperations(points.dtype, points.device)
    values: dict[Reduce, Tensor] = {}
    env = Environment(x=points[:, :1], y=points, reduce=values.__getitem__)
    once_less = torch.cat([weights[:, :1] - 1, weights[:, 1:]], dim=1)
    for part in reductions(target.expression):
        w = (once_less if part.kind.endswith("_others") else weights)[..., None]
        values[part] = _fold(part, evaluate(part.body, ops, env), w)
    return evaluate(target.expression, ops, env).expand(len(points), 1, target.width)[:, 0]


def _fold(part: Reduce, body: Tensor, w: Tensor) -> Tensor:
    if part.kind in ("max", "min"):
        body = body.masked_fill(w == 0, float("-inf") if part.kind == "max" else float("inf"))
        return body.amax(1, keepdim=True) if part.kind == "max" else body.amin(1, keepdim=True)
    total = (w * body.masked_fill(w == 0, 0.0)).sum(1, keepdim=True)
    return total / w.sum(1, keepdim=True) if part.kind.startswith("mean") else total

"""head(X)_i = mean_k v_k: the one attention of a compiled network, whatever its architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from sumformer.nn.multi_head import MultiHead

M = TypeVar("M", bound=MultiHead)
Head = Callable[[int, list[int], list[int]], MultiHead]
"""(width of the stream, coordinates of the values, coordinates of the means) → the attention."""


@dataclass(frozen=True)
class MeanHead:
    """A mean is rounded at most `roundings` times; `tokens` is n where the weights are made for one n."""

    architecture: str
    make: Head
    roundings: int
    tokens: int | None = None


def select(layer: M, values: list[int], means: list[int], scale: float = 1.0) -> M:
    """W_Q = W_K = 0, W_V takes the coordinates `values` times `scale`, W_O puts them at `means`."""
    with torch.no_grad():
        for parameter in (layer.W_Q.weight, layer.W_K.weight, layer.W_V.weight, layer.W_O.weight):
            parameter.zero_()
        for i, (source, target) in enumerate(zip(values, means, strict=True)):
            layer.W_V.weight[i, source] = scale
            layer.W_O.weight[target, i] = 1.0
    return layer

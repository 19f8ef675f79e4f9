"""(X_i, keep_i, Y_i), i = 1 … N: sets of tokens with a target for each token or for each set.

x (N, n, d) and keep (N, n), 1 = a real token; padding in x is 0. Regression: y (N, n, k) or (N, k), float64.
Classification: y (N, n) or (N,), int64, the places of the labels in `classes`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Label = int | str | bool | float


@dataclass(frozen=True)
class Task:
    """What is learned: the width d of tokens, k outputs for each token or set, or one of `classes`."""

    d: int
    k: int
    per_token: bool
    classes: tuple[Label, ...] | None = None
    flat: bool = False
    """Whether the targets came without a last axis of length 1, and predictions should too."""

    @property
    def d_out(self) -> int:
        """Outputs of the network."""
        return self.k if self.classes is None else len(self.classes)

    @property
    def kind(self) -> str:
        return "regression" if self.classes is None else "classification"

    def describe(self) -> str:
        each = "token" if self.per_token else "set"
        if self.classes is not None:
            return f"classification, one of {len(self.classes)} classes for each {each}"
        return f"regression, {self.k} number{'s' * (self.k != 1)} for each {each}"


def shortened(end: int, n: int) -> int:
    """`end` of n places, rounded up, so that not every batch has a length of its own."""
    return min(n, -(-end // 16) * 16)


@dataclass(frozen=True)
class Columns:
    """Of a table with a row for each token: which names its set, which are features, which targets."""

    set: str
    features: tuple[str, ...]
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sets:
    """N sets; `y` and `task` are None where only inputs are known, `columns` where they come from no table."""

    x: Tensor
    keep: Tensor
    y: Tensor | None = None
    task: Task | None = None
    columns: Columns | None = None

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def d(self) -> int:
        return self.x.shape[2]

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(1)

    @property
    def n_max(self) -> int:
        return int(self.lengths.max()) if len(self) else 0

    def mask(self) -> Tensor | None:
        """`keep`, or None when no token is padding."""
        return None if bool(self.keep.all()) else self.keep

    @property
    def ends(self) -> Tensor:
        """Behind the last real token of each set: where it may be cut off."""
        places = torch.arange(1, self.keep.shape[1] + 1, device=self.keep.device)
        return torch.where(self.keep, places, 0).amax(1)

    def cut(self) -> Sets:
        """Without the places behind the last real token of all."""
        end = shortened(int(self.ends.max()), self.keep.shape[1]) if len(self) else 0
        y = self.y[:, :end] if self.y is not None and self.task is not None and self.task.per_token else self.y
        return replace(self, x=self.x[:, :end], keep=self.keep[:, :end], y=y)

    def subset(self, index: Tensor) -> Sets:
        return replace(self, x=self.x[index], keep=self.keep[index], y=None if self.y is None else self.y[index])

    def fingerprint(self) -> str:
        """SHA-256 of all that training sees."""
        digest = hashlib.sha256(repr(self.task).encode())
        for tensor in (self.x, self.keep, self.y):
            if tensor is not None:
                digest.update(repr((tuple(tensor.shape), tensor.dtype)).encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()

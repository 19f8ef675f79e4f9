"""The state of training between two steps: weights, optimiser, best weights so far, and where in the data it stands.

Everything later is a function of it (and of settings and data), so a run that starts again from a saved state ends in
the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import InputError


@dataclass
class State:
    """`epoch` are complete, and `batch` steps of the next; `history` has an entry for each epoch, 0 before training."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    best: dict[str, Tensor]
    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    best_epoch: int = 0
    best_loss: float = inf
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)

    def numbers(self) -> dict[str, Any]:
        """What is not a tensor; JSON gives the same numbers back."""
        names = ("epoch", "batch", "loss_sum", "loss_count", "best_epoch", "best_loss", "seconds", "history")
        return {name: getattr(self, name) for name in names}

    def tensors(self) -> dict[str, Tensor]:
        out = {f"model.{key}": value for key, value in self.module.state_dict().items()}
        out |= {f"best.{key}": value for key, value in self.best.items()}
        for i, slots in self.optimiser.state_dict()["state"].items():
            out |= {f"optimiser.{i}.{key}": value for key, value in slots.items()}
        return {key: value.detach().cpu().contiguous().clone() for key, value in out.items()}

    def restore(self, numbers: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """The state that was saved; one of another network is refused."""
        model = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        try:
            self.module.load_state_dict(model)
        except RuntimeError as error:
            raise InputError(f"the saved state is one of another network: {error}") from None
        device = next(self.module.parameters()).device
        self.best = {k.removeprefix("best."): v.to(device) for k, v in tensors.items() if k.startswith("best.")}
        slots: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimiser."):
                _, place, name = key.split(".")
                slots.setdefault(int(place), {})[name] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": slots, "param_groups": groups})
        for name, value in numbers.items():
            setattr(self, name, value)

    def keep_best(self, loss: float) -> None:
        """Remember the weights if no earlier epoch was better."""
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            self.best = {key: value.detach().clone() for key, value in self.module.state_dict().items()}

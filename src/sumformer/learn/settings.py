"""Everything a training run depends on besides the data: with the same settings and data, the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from typing import Any

import torch

from sumformer.errors import InputError
from sumformer.learn.architectures import Size, check_architecture

# Steps that a thousand sets of ten tokens take within a minute on one core.
STEPS = {"transformer": 3000, "linformer": 3000, "performer": 3000, "sparse": 1500}
PLAIN_STEPS = 6000
FEWEST_EPOCHS, MOST_EPOCHS = 20, 400
RATES = {"mlp-sumformer": 3e-3, "polynomial-sumformer": 3e-3, "deep-sets": 3e-3}
ATTENTION_RATE, START_RATE = 1e-3, 1e-3
SMALL_STEP = 2**18  # tokens × hidden units


@dataclass(frozen=True)
class Settings:
    """None means: derived from the data by `resolve`, and recorded."""

    architecture: str = "mlp-sumformer"
    hidden: int = 64
    depth: int = 2
    latent: int = 32
    parameters: int | None = None
    epochs: int | None = None
    batch_size: int = 32
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    patience: int | None = None
    validation: float = 0.15
    test: float = 0.15
    seed: int = 0
    threads: int | None = None
    device: str = "cpu"
    start: str | None = None

    def __post_init__(self) -> None:
        check_architecture(self.architecture)
        whole = {"hidden": 1, "depth": 1, "latent": 1, "parameters": 1, "epochs": 1, "batch_size": 1, "patience": 1}
        wrong = [
            f"{name} = {value!r}"
            for name, least in (whole | {"seed": 0, "threads": 1}).items()
            if (value := getattr(self, name)) is not None and (not isinstance(value, int) or value < least)
        ]
        wrong += [f"{k} = {v}" for k, v in (("validation", self.validation), ("test", self.test)) if not 0 <= v < 1]
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            wrong.append(f"learning_rate = {self.learning_rate}")
        if not 0 <= self.weight_decay < float("inf"):
            wrong.append(f"weight_decay = {self.weight_decay}")
        if self.validation + self.test >= 1:
            wrong.append(f"validation + test = {self.validation + self.test:g}, which leaves nothing to train on")
        if self.device != "cpu" and not (self.device.startswith("cuda") and torch.cuda.is_available()):
            wrong.append(f"device = {self.device!r} (cpu, or cuda where there is one)")
        if wrong:
            raise InputError(f"settings: cannot use {', '.join(wrong)}")

    @property
    def size(self) -> Size:
        return Size(self.hidden, self.depth, self.latent)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Settings:
        """Names that this version does not know are refused."""
        unknown = set(data) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"settings: unknown {', '.join(sorted(unknown))}")
        return cls(**data)


def resolve(settings: Settings, train_sets: int, n_max: int) -> Settings:
    """Epochs for about 6000 steps (fewer with attention), a rate by architecture, patience a quarter of the epochs.

    One thread where a step is small, since more would only wait for one another; else as many as torch has.
    """
    small = settings.batch_size * n_max * settings.hidden < SMALL_STEP
    epochs = settings.epochs
    if epochs is None:
        steps = ceil(max(train_sets, 1) / settings.batch_size)
        epochs = min(max(ceil(STEPS.get(settings.architecture, PLAIN_STEPS) / steps), FEWEST_EPOCHS), MOST_EPOCHS)
    rate = settings.learning_rate
    if rate is None:
        rate = START_RATE if settings.start is not None else RATES.get(settings.architecture, ATTENTION_RATE)
    return replace(
        settings,
        epochs=epochs,
        learning_rate=rate,
        weight_decay=0.0 if settings.start is not None else settings.weight_decay,
        patience=settings.patience or max(20, epochs // 4),
        threads=settings.threads or (1 if small else torch.get_num_threads()),
    )

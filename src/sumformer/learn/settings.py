"""Everything a training run depends on besides the data: with the same settings and data, the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from operator import index
from typing import Any, SupportsFloat

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
WHOLE = {  # and the least they may be
    **dict.fromkeys(("hidden", "depth", "latent", "parameters", "epochs", "batch_size", "patience", "threads"), 1),
    "seed": 0,
}
REAL = ("learning_rate", "weight_decay", "validation", "test")
MAY_BE_NONE = ("parameters", "epochs", "patience", "threads", "learning_rate")


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
        wrong = [self._as_number(name, index) for name in WHOLE] + [self._as_number(name, float) for name in REAL]
        wrong = [words for words in wrong if words] or self._beyond()
        if wrong:
            raise InputError(f"settings: cannot use {', '.join(wrong)}")

    def _as_number(self, name: str, kind: Callable[[Any], int | float]) -> str:
        """Numbers of numpy become Python's; what is none is named."""
        value = getattr(self, name)
        if value is None and name in MAY_BE_NONE:
            return ""
        wrong = f"{name} = {value!r} ({'a whole number' if name in WHOLE else 'a number'})"
        if isinstance(value, str | bool) or not isinstance(value, SupportsFloat):
            return wrong
        try:
            object.__setattr__(self, name, kind(value))
        except (TypeError, ValueError):
            return wrong
        return ""

    def _beyond(self) -> list[str]:
        """What is out of range."""
        least = [
            f"{k} = {v} (at least {low})" for k, low in WHOLE.items() if (v := getattr(self, k)) is not None and v < low
        ]
        shares = [
            f"{k} = {v} (a share, 0 ≤ {k} < 1)" for k in ("validation", "test") if not 0 <= (v := getattr(self, k)) < 1
        ]
        wrong = least + shares
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            wrong.append(f"learning_rate = {self.learning_rate} (above 0)")
        if not 0 <= self.weight_decay < float("inf"):
            wrong.append(f"weight_decay = {self.weight_decay} (at least 0)")
        if not shares and self.validation + self.test >= 1:
            wrong.append(f"validation + test = {self.validation + self.test:g}, which leaves nothing to train on")
        if self.device != "cpu" and not (str(self.device).startswith("cuda") and torch.cuda.is_available()):
            wrong.append(f"device = {self.device!r} (cpu, or cuda where there is one)")
        return wrong

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

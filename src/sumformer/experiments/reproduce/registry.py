"""The experiments by name: configurations by size, the run, and the picture; each imported when it is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from sumformer.errors import InputError
from sumformer.experiments.reproduce.changes import OPTION, changed, differences
from sumformer.experiments.reproduce.outcome import Outcome

SIZES = ("full", "reduced", "tiny")


@dataclass(frozen=True)
class Experiment:
    """`module`: has Config (with `reduced` and `tiny`) and run; `module`_picture: has draw."""

    name: str
    about: str
    module: str

    def config(self, size: str, device: str, changes: Sequence[str] = ()) -> Any:
        """That of a size, with changes as `steps=500`."""
        if size not in SIZES:
            raise InputError(f"reproduce: expected a size in {SIZES}, got {size!r}")
        cls = self._part("").Config
        return changed(cls(device=device) if size == "full" else getattr(cls, size)(device), cls(), changes)

    def command(self, config: Any) -> str:
        """What runs with this configuration, said from the size that it is nearest to."""
        apart = {size: differences(config, self.config(size, config.device)) for size in SIZES}
        size = min(SIZES, key=lambda size: len(apart[size]))
        device = [] if config.device == "cpu" else ["--device", config.device]
        changes = [word for change in apart[size] for word in (OPTION, change)]
        return shlex.join(["sumformer", "reproduce", self.name, "--size", size, *device, *changes])

    def run(self, config: Any, progress: Callable[[str], None] = lambda text: None) -> Outcome:
        """The outcome, with the command that makes it again."""
        outcome: Outcome = self._part("").run(config, progress)
        return replace(outcome, command=self.command(config))

    def draw(self, outcome: Outcome, path: Path) -> None:
        self._part("_picture").draw(outcome, path)

    def _part(self, suffix: str) -> Any:
        return import_module(f"sumformer.experiments.reproduce.{self.module}{suffix}")


EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment("figure-1", "validation curves of the MLP and the Polynomial Sumformer", "figure_1"),
        Experiment("figure-2", "error against d and d', as published, plain, and trained better", "figure_2"),
        Experiment("copying", "the copying task with sparse attention patterns, by layers and sparsity", "copying"),
        Experiment("alternatives", "token mixers in place of self-attention, on masked prediction", "alternatives"),
        Experiment("constructed", "constructed against trained networks of equal size, on the gallery", "constructed"),
    )
}


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"reproduce: expected one of {', '.join(EXPERIMENTS)}, got {name!r}")
    return EXPERIMENTS[name]

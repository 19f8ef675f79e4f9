"""ŷ = undo(network(standardise(X))): a trained network with all that belongs to it, saved without pickle.

A folder holds config.json and model.safetensors (the network) and fit.json (standardisation, task, settings, history).
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sumformer.errors import FileFormatError, InputError, ShapeError, SumformerError
from sumformer.learn.files import read_json, write_bytes, write_json
from sumformer.learn.pooled import Pooled as Pooled  # known to the reader of config.json
from sumformer.learn.scaled import Scaled as Scaled
from sumformer.learn.sets import Columns, Sets, Task
from sumformer.learn.settings import Settings
from sumformer.learn.standardisation import Standardisation
from sumformer.learn.start import network_dtype
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE, PretrainedModule

FIT_FILE = "fit.json"
FORMAT = 1
PREDICTION_BATCH = 256
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Fitted:
    """`status` is finished, stopped (by Ctrl-C) or diverged; `history` has both losses of every epoch."""

    network: PretrainedModule
    standardisation: Standardisation
    task: Task
    settings: Settings
    status: str = "finished"
    best_epoch: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    columns: Columns | None = None
    constant_loss: float | None = None
    """The validation loss of the best constant."""

    @property
    def warning(self) -> str:
        """Why the network is worth little and what to try, in one sentence; empty where there is nothing to say."""
        if not self.history:
            return ""
        found, rate = [], self.settings.learning_rate
        tries = ["a lower learning rate" if rate is None else f"a learning rate below {rate:g}", "more epochs"]
        if self.best_epoch == 0:
            before = "those before training" if self.settings.start is None else "those it started from"
            found.append(f"no epoch improved the validation loss, so the weights are {before}")
        loss = self.history[self.best_epoch]["validation"]
        if self.constant_loss is not None and loss >= self.constant_loss:
            found.append(f"the validation loss, {loss:.4g}, is not below the best constant's, {self.constant_loss:.4g}")
            tries.append("another architecture, or other features if y does not depend on these")
        return f"{'; '.join(found)}. Try {', '.join(tries)}" if found else ""

    @torch.no_grad()
    def outputs(self, sets: Sets) -> Tensor:
        """(N, n, k) or (N, k) in units of the data; for classes, logits. Padding gets 0."""
        if sets.d != self.task.d:
            raise ShapeError("predict", f"tokens of width {self.task.d}", sets.x.shape)
        empty = (sets.lengths == 0).nonzero()
        if len(empty):
            raise InputError(f"predict: set {int(empty[0])} has no tokens")
        network, n = self.network.eval(), sets.x.shape[1]
        device = next(network.parameters()).device
        parts = []
        for piece in torch.split(torch.arange(len(sets)), PREDICTION_BATCH):
            part = sets.subset(piece).cut()
            x, mask = self.standardisation.inputs(part, network_dtype(network)).to(device), part.mask()
            got = network(x, attention_mask=None if mask is None else mask.to(device)).double().cpu()
            parts.append(functional.pad(got, (0, 0, 0, n - got.shape[1])) if self.task.per_token else got)
        out = torch.cat(parts)
        if self.standardisation.raw or self.task.classes is not None:
            return out
        out = self.standardisation.y.undo(out)
        return torch.where(sets.keep.unsqueeze(-1), out, 0.0) if self.task.per_token else out

    def predict(self, sets: Sets) -> Array:
        """Predictions in the shape and with the labels the targets had."""
        out = self.outputs(sets)
        if self.task.classes is not None:
            labels: Array = np.asarray(self.task.classes)[out.argmax(-1).numpy()]
            return labels if self.task.flat else labels[..., None]
        return np.asarray(out[..., 0].numpy() if self.task.flat else out.numpy())

    def probabilities(self, sets: Sets) -> Array:
        """Of each class, in the order of `task.classes`, along a last axis."""
        if self.task.classes is None:
            raise InputError("probabilities: the network predicts numbers, which have none")
        return np.asarray(self.outputs(sets).softmax(-1).numpy())

    def save(self, folder: Path) -> None:
        """Every file is replaced in one step, fit.json last."""
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving") as scratch:
            self.network.save_pretrained(scratch)
            for name in (WEIGHTS_FILE, CONFIG_FILE):
                write_bytes(folder / name, (Path(scratch) / name).read_bytes())
        data = {
            "format": FORMAT,
            "status": self.status,
            "task": asdict(self.task),
            "standardisation": self.standardisation.to_data(),
            "settings": self.settings.to_data(),
            "best_epoch": self.best_epoch,
            "constant_loss": self.constant_loss,
            "seconds": self.seconds,
            "history": self.history,
            "report": self.report,
            "columns": None if self.columns is None else asdict(self.columns),
        }
        write_json(folder / FIT_FILE, data)

    def reported(self, report: dict[str, Any]) -> Fitted:
        return replace(self, report=report)


def load_fitted(folder: str | Path) -> Fitted:
    """Read back what `save` wrote."""
    where = Path(folder)
    data = read_json(where / FIT_FILE, "a folder written by `sumformer fit`")
    network = PretrainedModule.from_pretrained(where)
    try:
        if data["format"] != FORMAT:
            raise FileFormatError(where / FIT_FILE, f"has format {data['format']}, expected {FORMAT}")
        task = data["task"]
        task["classes"] = None if task["classes"] is None else tuple(task["classes"])
        return Fitted(
            network,
            Standardisation.from_data(data["standardisation"]),
            Task(**task),
            Settings.from_data(data["settings"] | {"device": "cpu"}),
            **{name: data[name] for name in ("status", "best_epoch", "seconds", "history", "report")},
            columns=_columns(data.get("columns")),
            constant_loss=data.get("constant_loss"),
        )
    except SumformerError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(where / FIT_FILE, f"does not describe a fit ({error!r})") from None


def _columns(data: dict[str, Any] | None) -> Columns | None:
    return None if data is None else Columns(data["set"], tuple(data["features"]), tuple(data["targets"]))


def remove_saving(folder: Path) -> None:
    """What a killed process left of a save."""
    for scratch in folder.glob(".saving*"):
        shutil.rmtree(scratch, ignore_errors=True)

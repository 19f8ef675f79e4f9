"""fit: split → standardise → build (or start) → train → the best weights, with a folder that survives anything.

The folder has training.json (settings and a fingerprint of the data) from the beginning, checkpoint.safetensors as
training goes, and a `Fitted` at the end, or when it is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sumformer.certificates.certificate import CERTIFICATE_FILE
from sumformer.errors import DivergedError, FolderInUseError, InputError, TrainingError
from sumformer.learn.architectures import Shape, build, size_within
from sumformer.learn.checkpoint import CHECKPOINT_FILE, read_checkpoint, write_checkpoint
from sumformer.learn.files import read_json, remove_unfinished, write_json
from sumformer.learn.fitted import FIT_FILE, Fitted, load_fitted, remove_saving
from sumformer.learn.interruption import stoppable
from sumformer.learn.sets import Sets
from sumformer.learn.settings import Settings, resolve
from sumformer.learn.splitting import Split, split
from sumformer.learn.standardisation import Standardisation
from sumformer.learn.start import network_dtype, start_network
from sumformer.learn.state import State
from sumformer.learn.training import Batches, Progress, new_state, reproducible, train
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE, PretrainedModule
from sumformer.theorems.saved_folder import REPORT_FILE

TRAINING_FILE = "training.json"
# What may change when a run is resumed; anything else would make it another run.
CHANGEABLE = ("epochs", "learning_rate", "patience")
WAYS = ("Folder(…, resume=True)", "Folder(…, overwrite=True)")


@dataclass(frozen=True)
class Folder:
    """Where a run is kept, and how: `resume` goes on where it was, `overwrite` begins anew over another run."""

    path: Path
    resume: bool = False
    overwrite: bool = False
    save_every: float = 5.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))


def fit(
    sets: Sets,
    settings: Settings | None = None,
    folder: Folder | str | Path | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    changes: Mapping[str, Any] | None = None,
) -> Fitted:
    """The best network found. A run that is resumed keeps its settings but for epochs, learning_rate and patience.

    `changes` are those asked for; unless given, what `settings` have that is not the default.
    """
    if sets.y is None or sets.task is None:
        raise InputError("fit: expected sets with targets")
    empty = (sets.lengths == 0).nonzero()
    if len(empty):
        raise InputError(f"fit: set {int(empty[0])} has no tokens")
    place = Folder(Path(folder)) if isinstance(folder, str | Path) else folder
    given = settings or Settings()
    wanted = resolve(given, len(split_of(sets, given).train), sets.n_max)
    if place is not None:
        asked = _not_default(given) if changes is None else dict(changes)
        wanted, done = _open(place, wanted, sets, asked)
        if done is not None:
            return done
    with reproducible(wanted):
        return _run(sets, wanted, place, report)


def split_of(sets: Sets, settings: Settings) -> Split:
    """The split a run with these settings uses."""
    return split(len(sets), settings.validation, settings.test, settings.seed)


def shape_of(sets: Sets, standardisation: Standardisation) -> Shape:
    """What the data ask of a network."""
    if sets.task is None:
        raise InputError("shape_of: expected sets with targets")
    reach = float(standardisation.x.apply(sets.x)[sets.keep].abs().max()) if len(sets) else 1.0
    mean = float(sets.lengths.double().mean())
    return Shape(sets.d, sets.task.d_out, sets.task.per_token, sets.n_max, mean, max(reach, 1e-6))


def _run(sets: Sets, settings: Settings, place: Folder | None, report: Callable[[Progress], None]) -> Fitted:
    parts = split_of(sets, settings)
    raw = settings.start is not None
    standardisation = Standardisation.fit(sets.subset(parts.train), raw)
    network = _network(sets, settings, standardisation).to(settings.device)
    dtype = network_dtype(network)
    state = new_state(network, settings)
    identity = {"settings": settings.to_data()}
    if place is not None and place.resume:
        saved = read_checkpoint(place.path)
        if saved is not None:
            state.restore(saved[1], saved[2])
    data = [
        Batches.prepare(sets.subset(index), standardisation, dtype, settings.device)
        for index in (parts.train, parts.validation)
    ]
    constant = data[0].constant_loss(data[1])
    if place is not None:
        _begin(place, settings, sets)  # only now, when nothing asked for is left that could be refused

    def save() -> None:
        if place is not None:
            write_checkpoint(place.path, state, identity)

    every = 5.0 if place is None else place.save_every
    try:
        # Without a folder there is nothing to go on from: Ctrl-C is then what it always is.
        with stoppable() if place is not None else nullcontext() as stop:
            finished = train(state, data[0], data[1], settings, save, report, stop, every)
    except DivergedError as error:
        if not state.history:  # not even the weights before training have a finite loss
            raise
        kept = _finish(state, standardisation, sets, settings, "diverged", constant)
        _save(kept, place)
        raise DivergedError(f"{error}{_whereabouts(kept, place)}", kept) from None
    done = _finish(state, standardisation, sets, settings, "finished" if finished else "stopped", constant)
    _save(done, place)
    return done


def _whereabouts(kept: Fitted, place: Folder | None) -> str:
    which = f"those of epoch {kept.best_epoch}" if kept.best_epoch else "those before training"
    return "" if place is None else f". The best weights so far, {which}, are saved in {place.path}"


def _save(fitted: Fitted, place: Folder | None) -> None:
    if place is None:
        return
    try:
        fitted.save(place.path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TrainingError(
            f"cannot write the network into {place.path}: {reason}; the last checkpoint is kept. "
            "Make room and continue with --resume"
        ) from error


def _network(sets: Sets, settings: Settings, standardisation: Standardisation) -> nn.Module:
    if settings.start is not None:
        return start_network(settings.start, sets)
    shape, size = shape_of(sets, standardisation), settings.size
    if settings.parameters is not None:
        size = size_within(settings.architecture, shape, size, settings.parameters)
    return build(settings.architecture, shape, size, settings.seed)


def _finish(
    state: State, standardisation: Standardisation, sets: Sets, settings: Settings, status: str, constant: float
) -> Fitted:
    """The best weights, on the CPU."""
    network = state.module
    network.load_state_dict(state.best)
    if not isinstance(network, PretrainedModule) or sets.task is None:
        raise TypeError("fit trains modules that can be saved")
    module = network.cpu().eval().requires_grad_(False)
    return Fitted(
        module,
        standardisation,
        sets.task,
        settings,
        status,
        state.best_epoch,
        state.seconds,
        list(state.history),
        columns=sets.columns,
        constant_loss=constant,
    )


def _open(place: Folder, wanted: Settings, sets: Sets, changes: dict[str, Any]) -> tuple[Settings, Fitted | None]:
    """The settings to run with, and the result where there is nothing left to do; nothing is written."""
    folder, there = place.path, _there(place.path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    if wanted.start is not None and Path(wanted.start).resolve() == folder.resolve():
        raise InputError(f"{folder} is what to start from; give another folder to train in, or it would be lost")
    if there and not place.resume and not place.overwrite:
        raise FolderInUseError(folder, there, TRAINING_FILE in there, WAYS)
    if place.resume and TRAINING_FILE in there:
        data = read_json(folder / TRAINING_FILE, "the record of a training run")
        if data.get("data") != sets.fingerprint():
            raise InputError(f"{folder} was trained on other data (or read another way); it cannot go on with these")
        settings = _changed(Settings.from_data(data["settings"]), changes, folder)
        if FIT_FILE in there and not changes:
            done = load_fitted(folder)
            if done.status == "finished":
                return settings, done
        return settings, None
    if not place.overwrite and set(there) & {CONFIG_FILE, WEIGHTS_FILE, FIT_FILE, CHECKPOINT_FILE}:
        raise InputError(f"{folder} holds no run that can be resumed ({', '.join(there)} without {TRAINING_FILE})")
    return wanted, None


def _begin(place: Folder, settings: Settings, sets: Sets) -> None:
    """The folder as it is when a run starts or goes on: the record, and nothing of another run."""
    place.path.mkdir(parents=True, exist_ok=True)
    remove_unfinished(place.path)
    remove_saving(place.path)
    if place.overwrite and not (place.resume and (place.path / TRAINING_FILE).exists()):
        for name in _there(place.path):
            (place.path / name).unlink()
    record = {"settings": settings.to_data(), "data": sets.fingerprint(), "torch": torch.__version__}
    write_json(place.path / TRAINING_FILE, record)


def _there(folder: Path) -> list[str]:
    names = (TRAINING_FILE, CHECKPOINT_FILE, FIT_FILE, CONFIG_FILE, WEIGHTS_FILE, CERTIFICATE_FILE, REPORT_FILE)
    return [name for name in names if (folder / name).exists()]


def _not_default(settings: Settings) -> dict[str, Any]:
    usual = Settings().to_data()
    return {name: value for name, value in settings.to_data().items() if value != usual[name]}


def _changed(settings: Settings, changes: dict[str, Any], folder: Path) -> Settings:
    different = {k: v for k, v in changes.items() if v is not None and getattr(settings, k) != v}
    fixed = [f"{name} = {getattr(settings, name)!r}" for name in different if name not in CHANGEABLE]
    if fixed:
        raise InputError(f"{folder} was begun with {', '.join(fixed)}; a resumed run keeps that")
    changes.clear()
    changes.update(different)
    return replace(settings, **different)

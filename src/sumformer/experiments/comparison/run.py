"""Every architecture on the same data: a sweep of the latent dimension, then several seeds, at one parameter budget.

For each seed all architectures see the same split. Errors are those of `evaluation.py`; validation errors choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite, sqrt
from statistics import fmean
from typing import Any

from sumformer.errors import InputError, SumformerError, TrainingError
from sumformer.experiments.comparison.costs import costs
from sumformer.experiments.comparison.recommendation import recommend, smallest_close
from sumformer.learn.architectures import ARCHITECTURES, Shape, Size, latent_dimension, parameter_count, size_within
from sumformer.learn.evaluation import examine
from sumformer.learn.fitted import Fitted
from sumformer.learn.fitting import fit, shape_of, split_of
from sumformer.learn.sets import Sets
from sumformer.learn.settings import Settings
from sumformer.learn.standardisation import Standardisation


@dataclass(frozen=True)
class Config:
    """What is tried. `epochs` None: as many as `fit` would take for 2000 steps."""

    architectures: tuple[str, ...] = tuple(ARCHITECTURES)
    parameters: int = 10_000
    latents: tuple[int, ...] = (4, 16, 64)
    seeds: int = 3
    epochs: int | None = None
    depth: int = 2
    lengths: tuple[int, ...] = (16, 64, 256, 1024)

    def __post_init__(self) -> None:
        numbers = (self.seeds, *self.latents, 1 if self.epochs is None else self.epochs)
        if not self.latents or min(numbers) < 1 or not self.architectures:
            raise InputError(
                "compare: expected at least one architecture, one seed, one epoch, and latent dimensions ≥ 1"
            )


STEPS = 2000


@dataclass(frozen=True)
class Trial:
    """One fit and what it is worth."""

    latent: int | None
    size: Size
    fitted: Fitted
    validation: float
    report: dict[str, Any]
    by_length: list[dict[str, Any]]


def run(
    sets: Sets,
    config: Config,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """One row for each architecture, and the recommendation; what could not be tried is listed with the reason.

    `keep` is given the result so far after each row. Ctrl-C ends the comparison with the rows that are there
    (`status` "stopped"); with none it is what it always is.
    """
    shape = shape_of(sets, Standardisation.fit(sets))
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for k, name in enumerate(config.architectures):
        try:
            rows.append(_architecture(name, sets, shape, config, progress))
            if k + 1 < len(config.architectures):
                missing = dict.fromkeys(config.architectures[k + 1 :], "not finished")
                keep(_result(sets, config, rows, left_out | missing, "unfinished"))
        except (InputError, TrainingError) as error:
            left_out[name] = str(error)
        except KeyboardInterrupt:
            if not rows:
                raise
            rest = [other for other in config.architectures[k:] if other != rows[-1]["name"]]
            return _result(sets, config, rows, left_out | dict.fromkeys(rest, "not finished"), "stopped")
    if not rows:
        raise InputError("compare: no architecture could be trained: " + "; ".join(left_out.values()))
    return _result(sets, config, rows, left_out, "finished")


def _result(
    sets: Sets, config: Config, rows: list[dict[str, Any]], left_out: dict[str, str], status: str
) -> dict[str, Any]:
    lengths = "sets of several lengths" if len(set(sets.lengths.tolist())) > 1 else f"sets of {sets.n_max} tokens"
    return {
        "status": status,
        "config": asdict(config),
        "task": "" if sets.task is None else sets.task.describe(),
        "data": f"{len(sets)} {lengths}, d = {sets.d}",
        "rows": rows,
        "left_out": left_out,
        "recommendation": recommend(rows),
    }


def _architecture(
    name: str, sets: Sets, shape: Shape, config: Config, progress: Callable[[str], None]
) -> dict[str, Any]:
    sizes: dict[int, Size] = {}
    refused = ""
    for latent in config.latents:
        base = Size(depth=config.depth, latent=latent)
        real = latent_dimension(name, shape, base)
        try:
            sizes.setdefault(real or 0, size_within(name, shape, base, config.parameters))
        except SumformerError as error:
            refused = str(error)
    if not sizes:
        raise InputError(refused)
    sweep = {}
    for real, size in sizes.items():
        progress(f"{name}{f', latent {real}' if real else ''}, seed 0")
        sweep[real] = _trial(name, sets, shape, size, config, 0)
    chosen = smallest_close({latent: trial.validation for latent, trial in sweep.items()})
    trials = [sweep[chosen]]
    for seed in range(1, config.seeds):
        progress(f"{name}{f', latent {chosen}' if chosen else ''}, seed {seed}")
        trials.append(_trial(name, sets, shape, sizes[chosen], config, seed))
    progress(f"{name}, time and memory against n")
    first = trials[0]
    return {
        "name": name,
        "latent": first.latent,
        "hidden": first.size.hidden,
        "parameters": parameter_count(first.fitted.network),
        "equivariant": bool(first.report["equivariant"]),
        "validation": [t.validation for t in trials],
        "test": [t.report["error"] for t in trials],
        "mean_test": fmean(t.report["error"] for t in trials),
        "train_seconds": fmean(t.fitted.seconds for t in trials),
        "milliseconds_per_set": min(t.report["milliseconds_per_set"] for t in trials),
        "sweep": [
            {"latent": real, "hidden": t.size.hidden, "validation": t.validation, "test": t.report["error"]}
            for real, t in sweep.items()
            if real
        ],
        "by_length": first.by_length,
        "costs": costs(name, shape, first.size, tuple(sorted({sets.n_max, *config.lengths}))),
    }


def _trial(name: str, sets: Sets, shape: Shape, size: Size, config: Config, seed: int) -> Trial:
    settings = Settings(
        name, size.hidden, size.depth, size.latent, epochs=config.epochs or _epochs(len(sets)), seed=seed
    )
    fitted = fit(sets, settings)
    parts = split_of(sets, fitted.settings)
    validation = examine(fitted, sets.subset(parts.validation)).report["error"]
    if not isfinite(validation):
        raise InputError(f"{name}: the validation error is not finite")
    held = examine(fitted, sets.subset(parts.test))
    lengths = held.sets.lengths
    by_length = []
    groups = lengths.argsort(stable=True).tensor_split(min(4, len(set(lengths.tolist()))))
    for group in groups:
        mean = float(held.set_errors[group].square().mean())
        error = sqrt(mean) if fitted.task.classes is None else float(held.set_errors[group].mean())
        by_length.append({"n": float(lengths[group].double().mean()), "sets": len(group), "error": error})
    return Trial(latent_dimension(name, shape, size), size, fitted, validation, held.report, by_length)


def _epochs(count: int) -> int:
    steps = max(1, round(0.7 * count / 32))
    return max(10, min(STEPS // steps, 200))

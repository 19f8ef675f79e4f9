"""Constructed against trained at equal size, on the gallery: the errors of a construction, of MLP Sumformers trained
from random weights, and of the construction trained on.

Equal size: the same latent dimension, and hidden layers as wide as the construction's parameters allow (at least 8).
Beside it networks of the paper's size, five hidden layers of 50, with the same latent dimension.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from sumformer.errors import SumformerError
from sumformer.experiments.reproduce.constructed_runs import (
    RATES_FROM_CONSTRUCTION,
    RATES_FROM_RANDOM,
    Sample,
    Say,
    Task,
    from_construction,
    from_random,
    mlp_parameters,
    relative_error,
)
from sumformer.experiments.reproduce.outcome import Outcome, machine
from sumformer.targets.gallery import GALLERY
from sumformer.theorems.construction import construct

UNSAID = (
    "the papers train no constructed network: this comparison is ours",
    "a construction is given the formula, a network from random only samples of it: this is not a race of equals",
    "a construction without coefficients is exact but for rounding; it has nothing to train on",
    "training minimises a mean over samples and proves nothing; a construction bounds the largest error everywhere",
)
DEPTH, LEAST_HIDDEN = 3, 8
SMALL, LARGE, ONWARD = "trained, equal size", "trained, 5 × 50", "constructed, trained on"


@dataclass(frozen=True)
class Config:
    """Gallery targets that a route of sums certifies, at n tokens of width d."""

    n: int = 5
    d: int = 2
    epsilon: float = 1e-2
    points: int = 2000
    choosing: int = 500
    validation: int = 1000
    epochs: int = 200
    batch: int = 50
    onward_batch: int = 200
    seeds: int = 3
    most: int = 1000  # targets
    large: tuple[int, int] = (50, 5)  # hidden, depth
    large_seeds: int = 1
    device: str = "cpu"

    @staticmethod
    def reduced(device: str = "cpu") -> Config:
        """Minutes on two cores."""
        return Config(epochs=40, seeds=1, device=device)

    @staticmethod
    def tiny(device: str = "cpu") -> Config:
        """Seconds, for tests."""
        return Config(3, 1, 0.1, 200, 50, 100, 5, 50, 200, 2, most=11, large=(10, 2), device=device)


def run(config: Config, progress: Callable[[str], None] = lambda text: None) -> Outcome:
    start = time.perf_counter()
    tasks, refused = _tasks(config, progress)
    rows: list[dict[str, Any]] = [
        {
            "target": task.name,
            "certified": task.construction.certificate.total,
            "latent": task.latent,
            "parameters": task.parameters,
            "constructed": relative_error(task.construction.network, task.judge),
        }
        for task in tasks
    ]
    _train_equal(config, tasks, rows, progress)
    _train(config, tasks, rows, LARGE, *config.large, config.large_seeds, progress)
    for task, row in zip(tasks, rows, strict=True):
        if task.parameters:
            progress(f"{task.name}: training the construction on")
            row[ONWARD], row["rate"] = from_construction(task, config.epochs, config.onward_batch)
    return Outcome(
        "constructed",
        asdict(config) | {"rates": RATES_FROM_RANDOM, "onward_rates": RATES_FROM_CONSTRUCTION},
        {"rows": rows, "refused": refused},
        tuple(rows),
        _findings(rows, refused),
        UNSAID,
        time.perf_counter() - start,
        machine(config.device),
    )


def _tasks(config: Config, say: Say) -> tuple[list[Task], dict[str, str]]:
    """Those that the route certifies; the others with the reason."""
    found: list[Task] = []
    refused: dict[str, str] = {}
    for name, entry in GALLERY.items():
        if len(found) == config.most:
            break
        say(f"{name}: constructing")
        try:
            built = construct(entry.build(d=config.d, n=config.n), config.epsilon, route="sums")
        except SumformerError as error:
            refused[name] = str(error).splitlines()[0]
            continue
        f: Any = built.target
        sizes = (config.points, config.choosing, config.validation)
        found.append(Task(name, built, *(Sample.draw(f, size, config.n, i) for i, size in enumerate(sizes))))
    return found, refused


def _train_equal(config: Config, tasks: list[Task], rows: list[dict[str, Any]], say: Say) -> None:
    """Networks with hidden layers of one width form one ensemble."""
    widths = [_hidden(config.d, task) for task in tasks]
    for hidden in sorted(set(widths)):
        chosen = [i for i, width in enumerate(widths) if width == hidden]
        _train(config, [tasks[i] for i in chosen], [rows[i] for i in chosen], SMALL, hidden, DEPTH, config.seeds, say)


def _train(
    config: Config,
    tasks: list[Task],
    rows: list[dict[str, Any]],
    key: str,
    hidden: int,
    depth: int,
    seeds: int,
    say: Say,
) -> None:
    def tell(text: str) -> None:
        say(f"{key} ({depth} × {hidden}): {text}")

    found = from_random(tasks, hidden, depth, config.epochs, config.batch, seeds, config.device, tell)
    for task, row, errors in zip(tasks, rows, found, strict=True):
        row[f"{key}: parameters"] = mlp_parameters(config.d, task.latent, task.learn.Y.shape[-1], hidden, depth)
        row[key], row[f"{key}: least"], row[f"{key}: most"] = median(errors), min(errors), max(errors)


def _hidden(d: int, task: Task) -> int:
    """The widest hidden layers with no more parameters than the construction, but at least `LEAST_HIDDEN`."""
    hidden = LEAST_HIDDEN
    while mlp_parameters(d, task.latent, task.learn.Y.shape[-1], hidden + 1, DEPTH) <= task.parameters:
        hidden += 1
    return hidden


def _findings(rows: list[dict[str, Any]], refused: dict[str, str]) -> tuple[str, ...]:
    if not rows:
        return ("no target of the gallery has a construction in this configuration",)
    exact = [row for row in rows if not row["parameters"]]
    weighty = [row for row in rows if row["parameters"]]
    fit = sum(row[f"{SMALL}: parameters"] <= row["parameters"] for row in rows)
    lines = [
        _against(rows, SMALL, f"networks of equal size (on {len(rows) - fit} of them the least, which has more)"),
        _against(rows, LARGE, "networks of the paper's size"),
        f"{len(exact)} constructions have no coefficients and are exact but for rounding: largest error "
        f"{max((row['constructed'] for row in exact), default=0.0):.1e}",
    ]
    if weighty:
        better = [row for row in weighty if row[ONWARD] < row["constructed"]]
        worse = [row["target"] for row in weighty if row[ONWARD] >= row["constructed"]]
        gain = median(row["constructed"] / row[ONWARD] for row in weighty)
        ahead = sum(row[ONWARD] < min(row[SMALL], row[LARGE]) for row in weighty)
        lines.append(
            f"training on lowers the error of {len(better)} of the {len(weighty)} constructions with coefficients, "
            f"{_times(gain)} in the median" + (f", and raises it for {', '.join(worse)}" if worse else "")
        )
        lines.append(f"a start from the construction ends below both starts from random on {ahead} of {len(weighty)}")
    if refused:
        lines.append(f"left out, not made of sums: {', '.join(refused)}")
    return (*lines, *(_line(row) for row in rows))


def _against(rows: list[dict[str, Any]], key: str, whom: str) -> str:
    wins = [row for row in rows if row["constructed"] < row[key]]
    lost = [row["target"] for row in rows if row["constructed"] >= row[key]]
    weighty = [row[key] / row["constructed"] for row in rows if row["parameters"]]
    ratio = f", {_times(median(weighty))} in the median of those with coefficients" if weighty else ""
    text = f"the construction is more accurate than {whom} on {len(wins)} of {len(rows)} targets{ratio}"
    return text + (f"; not on {', '.join(lost)}" if lost else "")


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.2g} times"


def _line(row: dict[str, Any]) -> str:
    onward = f", trained on {row[ONWARD]:.1e} (rate {row['rate']:.0e})" if row["parameters"] else ""
    return (
        f"{row['target']}: constructed {row['constructed']:.1e} ({row['parameters']} coefficients, certified "
        f"{row['certified']:.1e}){onward}; from random {row[SMALL]:.1e} ({row[f'{SMALL}: parameters']} parameters) and "
        f"{row[LARGE]:.1e} ({row[f'{LARGE}: parameters']})"
    )

"""Figure 2: the error of MLP Sumformers against d and d', n = 3, for g = x₁ + 7x₁² + 3x₁(x₂ + x₃)³ by coordinates.

d' = d represents g exactly (φ = id). *plain*: the paper's budget with Adam; *best*: same data, epochs and MLPs with
standardised data, the mean in place of the sum, SiLU, AdamW and one cycle of the learning rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from sumformer.experiments.reproduce import published
from sumformer.experiments.reproduce.outcome import Outcome, machine
from sumformer.learn.ensemble import History, Member, Recipe, SumformerEnsemble, train

UNSAID = (
    "optimiser, learning rate, batch size, split and input distribution are not stated in the paper: "
    "here Adam, uniform tokens, all points for training and fresh points for validation",
    "the plain panel's batch of 128 was chosen, among 50, 128, 256 and 512, as the one nearest to the published map",
    "how many runs a published cell stands for is not stated; here the median over seeds",
)
BUCKETS = ((1, 16), (17, 128), (129, 512), (513, 2**30))  # members of about one width share an ensemble
CONSTANT = 0.662  # relative error of the best constant on uniform tokens
OWN_ALONE = 0.386  # of the best predictor that ignores the other tokens


@dataclass(frozen=True)
class Config:
    """The published grid by default."""

    dims: tuple[int, ...] = tuple(range(1, 11))
    latents: tuple[int, ...] = tuple(2**k for k in range(12))
    seeds: int = 3
    points: int = 2000
    validation: int = 1000
    epochs: int = 200
    n: int = 3
    hidden: int = 50
    depth: int = 5
    plain_batch: int = 128  # of 50, 128, 256 and 512 the one whose map is nearest to the published (in log error)
    plain_rate: float = 1e-3
    best_batch: int = 50
    best_rate: float = 1e-2
    best_decay: float = 1e-2
    device: str = "cpu"

    @staticmethod
    def reduced(device: str = "cpu") -> Config:
        """Minutes on two cores: three widths of token, four latent dimensions, one seed."""
        return Config(dims=(1, 4, 10), latents=(1, 4, 16, 64), seeds=1, device=device)

    @staticmethod
    def tiny(device: str = "cpu") -> Config:
        """Seconds, for tests: shows that it runs and that d' < d hurts."""
        sizes: dict[str, Any] = {"points": 300, "validation": 100, "epochs": 40, "hidden": 30, "depth": 3}
        return Config(dims=(1, 2), latents=(1, 2), seeds=1, device=device, **sizes)


def run(config: Config, progress: Callable[[str], None] = lambda text: None) -> Outcome:
    start = time.perf_counter()
    data, validation = _data(config, config.points, 0), _data(config, config.validation, 1)
    errors = {name: _panel(name, config, data, validation, progress) for name in ("plain", "best")}
    rows = tuple(
        {"panel": panel, "d": d, "latent": k, "seed": s, "error": e, "published": published.figure_2().get((k, d))}
        for panel, cells in errors.items()
        for (k, d), values in cells.items()
        for s, e in enumerate(values)
    )
    return Outcome(
        "figure-2",
        asdict(config),
        {name: [[k, d, median(v), v] for (k, d), v in cells.items()] for name, cells in errors.items()},
        rows,
        _findings(config, errors),
        UNSAID,
        time.perf_counter() - start,
        machine(config.device),
    )


Cells = dict[tuple[int, int], list[float]]


def _panel(
    name: str,
    config: Config,
    data: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    progress: Callable[[str], None],
) -> Cells:
    """The best validation error of every (d', d), by seed."""
    cells: Cells = {}
    for low, high in BUCKETS:
        latents = [k for k in config.latents if low <= k <= high]
        places = [(k, d, s) for k in latents for d in config.dims for s in range(config.seeds)]
        if not places:
            continue
        rate = config.best_rate if name == "best" else config.plain_rate
        members = [Member(d, k, d, seed=s, data=config.dims.index(d), learning_rate=rate) for k, d, s in places]
        ensemble, recipe = recipe_of(name, config, members)
        label = f"{name}, d' = {latents[0]}…{latents[-1]}, {len(members)} models"

        def report(epoch: int, epochs: int, found: Tensor, label: str = label) -> None:
            progress(f"{label}: epoch {epoch} of {epochs}, median error {float(found.median()):.3f}")

        history: History = train(ensemble.to(config.device), data, validation, recipe, report)
        for (k, d, _), error in zip(places, history.best.tolist(), strict=True):
            cells.setdefault((k, d), []).append(error)
    return cells


def recipe_of(name: str, config: Config, members: list[Member]) -> tuple[SumformerEnsemble, Recipe]:
    """The models and their training: *plain* or *best*."""
    every = max(1, config.epochs // 40)
    if name == "plain":
        ensemble = SumformerEnsemble(members, config.hidden, config.depth)
        return ensemble, Recipe(config.epochs, config.plain_batch, validate_every=every)
    ensemble = SumformerEnsemble(members, config.hidden, config.depth, "silu", mean=True)
    recipe = Recipe(
        config.epochs,
        config.best_batch,
        config.best_decay,
        schedule="one-cycle",
        standardise=True,
        validate_every=every,
    )
    return ensemble, recipe


def g(X: Tensor) -> Tensor:
    """x + 7x² + 3x(Σ_{j ≠ own} x_j)³ by coordinates."""
    return X + 7 * X**2 + 3 * X * (X.sum(-2, keepdim=True) - X) ** 3


def _data(config: Config, points: int, seed: int) -> tuple[Tensor, Tensor]:
    """A data set per d, padded by zeros."""
    X = torch.zeros(len(config.dims), points, config.n, max(config.dims))
    for row, d in zip(X, config.dims, strict=True):
        generator = torch.Generator().manual_seed(1000 * seed + d)
        row[..., :d] = torch.rand(points, config.n, d, generator=generator)
    return X, g(X)


def _findings(config: Config, errors: dict[str, Cells]) -> tuple[str, ...]:
    paper = published.figure_2()
    out = []
    for name, cells in errors.items():
        enough = {place: median(v) for place, v in cells.items() if place[0] >= place[1]}
        few = {place: median(v) for place, v in cells.items() if place[0] < place[1]}
        if enough:
            place, worst = max(enough.items(), key=lambda item: item[1])
            there = paper.get(place)
            beside = "" if there is None else f" (the paper there: {there:g})"
            shown = f"worst median over seeds {worst:.3f} at d' = {place[0]}, d = {place[1]}{beside}"
            most = max((paper[p] for p in enough if p in paper), default=None)
            tail = "" if most is None else f"; the paper's worst of these cells: {most:g}"
            out.append(f"{name}, d' ≥ d: {shown}{tail}")
            out.append(f"{name}, d' ≥ d: {sum(e <= 0.05 for e in enough.values())} of {len(enough)} cells ≤ 0.05")
        if few:
            out.append(f"{name}, d' < d: from {min(few.values()):.3f} to {max(few.values()):.3f}")
    out.append(f"for comparison, the best constant: {CONSTANT}; the best predictor of the own token alone: {OWN_ALONE}")
    return tuple(out)

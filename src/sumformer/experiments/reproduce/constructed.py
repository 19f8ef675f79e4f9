"""Constructed against trained at equal size, on the gallery: the errors of a construction, of an MLP Sumformer trained
from random weights, and of the construction trained on.

Equal size: the same latent dimension, and hidden layers as wide as the construction's parameters allow (at least 8).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from sumformer.errors import RefusedError, SumformerError
from sumformer.experiments.reproduce.outcome import Outcome, machine
from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train
from sumformer.targets.gallery import GALLERY
from sumformer.targets.target import Target
from sumformer.theorems.construction import Construction, construct

UNSAID = ("the papers train no constructed network: this comparison is ours",)
DEPTH = 3
LEAST_HIDDEN = 8


@dataclass(frozen=True)
class Config:
    """Gallery targets that a route of sums certifies, at n tokens of width d."""

    n: int = 5
    d: int = 2
    epsilon: float = 1e-2
    points: int = 2000
    validation: int = 1000
    epochs: int = 200
    batch: int = 50
    rate: float = 1e-2
    seeds: int = 3
    most: int = 1000  # targets
    device: str = "cpu"

    @staticmethod
    def reduced(device: str = "cpu") -> Config:
        """Minutes on two cores."""
        return Config(epochs=60, seeds=1, device=device)

    @staticmethod
    def tiny(device: str = "cpu") -> Config:
        """Seconds, for tests."""
        return Config(n=3, d=1, epsilon=0.1, points=200, validation=100, epochs=5, seeds=1, most=3, device=device)


def run(config: Config, progress: Callable[[str], None] = lambda text: None) -> Outcome:
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for name, construction in _constructions(config):
        progress(f"{name}: training")
        rows.append({"target": name, **_compare(config, construction)})
    return Outcome(
        "constructed",
        asdict(config),
        {"rows": rows},
        tuple(rows),
        _findings(rows),
        UNSAID,
        time.perf_counter() - start,
        machine(config.device),
    )


def _constructions(config: Config) -> list[tuple[str, Construction]]:
    """Those with weights to train: a network without parameters is exact and has nothing to learn."""
    found: list[tuple[str, Construction]] = []
    for name, entry in GALLERY.items():
        if len(found) == config.most:
            break
        try:
            built = construct(entry.build(d=config.d, n=config.n), config.epsilon, route="sums")
        except (RefusedError, SumformerError):
            continue
        if sum(p.numel() for p in built.network.parameters()):
            found.append((name, built))
    return found


def _compare(config: Config, construction: Construction) -> dict[str, Any]:
    f: Any = construction.target
    data, held = _data(config, f, config.points, 0), _data(config, f, config.validation, 1)
    size = sum(p.numel() for p in construction.network.parameters())
    hidden = _hidden(config.d, construction.certificate.latent_dimension, f.width, size)
    members = [
        Member(config.d, construction.certificate.latent_dimension, f.width, seed, 0, config.rate)
        for seed in range(config.seeds)
    ]
    ensemble = SumformerEnsemble(members, hidden, DEPTH, "silu", mean=True).to(config.device)
    recipe = Recipe(config.epochs, config.batch, 1e-2, schedule="one-cycle", standardise=True)
    history = train(ensemble, (data[0][None], data[1][None]), (held[0][None], held[1][None]), recipe)
    return {
        "epsilon": config.epsilon,
        "certified": construction.certificate.total,
        "latent": construction.certificate.latent_dimension,
        "parameters": size,
        "constructed": _error(construction.network, held),
        "trained parameters": ensemble.flat.shape[1],
        "trained": float(history.best.median()),
        "constructed, trained on": _error(_train_on(config, construction, data), held),
    }


def _hidden(d: int, latent: int, width: int, size: int) -> int:
    """The widest hidden layers with at most `size` parameters, but at least `LEAST_HIDDEN`."""
    for hidden in range(LEAST_HIDDEN, 512):
        phi = (d + 1) * hidden + (DEPTH - 1) * (hidden + 1) * hidden + (hidden + 1) * latent
        psi = (d + 1 + latent) * hidden + (DEPTH - 1) * (hidden + 1) * hidden + (hidden + 1) * width
        if phi + psi > size:
            return max(LEAST_HIDDEN, hidden - 1)
    return 512


def _train_on(config: Config, construction: Construction, data: tuple[Tensor, Tensor]) -> Any:
    """The construction's network after gradient descent on its coefficients; the best seen on the training data."""
    network = copy.deepcopy(construction.network).requires_grad_(True)
    X, Y = (part.double() for part in data)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    best, kept = _error(network, (X, Y)), copy.deepcopy(network.state_dict())
    for _ in range(max(1, config.epochs // 4)):
        for rows in torch.split(torch.randperm(len(X), generator=generator), config.batch * 4):
            optimiser.zero_grad()
            (network(X[rows]) - Y[rows]).square().mean().backward()
            optimiser.step()
        error = _error(network, (X, Y))
        if error < best:
            best, kept = error, copy.deepcopy(network.state_dict())
    network.load_state_dict(kept)
    return network


@torch.no_grad()
def _error(network: Any, data: tuple[Tensor, Tensor]) -> float:
    """‖N(X) − Y‖ / ‖Y‖."""
    X, Y = (part.double() for part in data)
    return float((network(X) - Y).norm() / Y.norm())


def _data(config: Config, f: Target, points: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(points, config.n, config.d, generator=generator, dtype=torch.float64)
    return X, f(X)


def _findings(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    if not rows:
        return ("no target of the gallery has a construction with weights in this configuration",)
    better = sum(r["constructed"] < r["trained"] for r in rows)
    onward = sum(r["constructed, trained on"] < r["constructed"] for r in rows)
    lines = [
        f"{r['target']}: constructed {r['constructed']:.2g} ({r['parameters']} parameters), trained from random "
        f"{r['trained']:.2g} ({r['trained parameters']}), constructed and trained on {r['constructed, trained on']:.2g}"
        for r in rows
    ]
    return (
        f"the construction has the smaller error on {better} of {len(rows)} targets, and comes with a proof",
        f"training on lowers a construction's mean error on {onward} of {len(rows)} targets (its certificate is void)",
        *lines,
    )

"""The competitors of `constructed`: MLP Sumformers trained from random weights, and constructions trained on.

Both learn from the same points, choose their learning rate on others, and are judged on a third sample.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train
from sumformer.learn.ensemble.standard_data import StandardData
from sumformer.targets.target import Target
from sumformer.theorems.constructed import Construction

RATES_FROM_RANDOM = (3e-3, 1e-2)
RATES_FROM_CONSTRUCTION = (1e-6, 1e-5, 1e-4, 1e-3)
Say = Callable[[str], None]


class Sample(NamedTuple):
    X: Tensor
    Y: Tensor

    @staticmethod
    def draw(f: Target, points: int, n: int, seed: int) -> Sample:
        """Uniform on [0, 1]^{n×d}."""
        generator = torch.Generator().manual_seed(seed)
        X = torch.rand(points, n, f.d, generator=generator, dtype=torch.float64)
        return Sample(X, f(X))


@dataclass(frozen=True)
class Task:
    """One target: its construction, and what is learned from, chosen on and judged on."""

    name: str
    construction: Construction
    learn: Sample
    choose: Sample
    judge: Sample

    @property
    def latent(self) -> int:
        return self.construction.certificate.latent_dimension

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.construction.network.parameters())


@torch.no_grad()
def relative_error(network: Callable[[Tensor], Tensor], sample: Sample) -> float:
    """‖N(X) − Y‖ / ‖Y‖."""
    return float((network(sample.X) - sample.Y).norm() / sample.Y.norm())


def mlp_parameters(d: int, latent: int, width: int, hidden: int, depth: int) -> int:
    """Of `mlp_sumformer`."""
    inner = (depth - 1) * (hidden + 1) * hidden
    phi = (d + 1) * hidden + inner + (hidden + 1) * latent
    return phi + (d + 1 + latent) * hidden + inner + (hidden + 1) * width


def from_random(
    tasks: Sequence[Task], hidden: int, depth: int, epochs: int, batch: int, seeds: int, device: str, say: Say
) -> list[list[float]]:
    """The errors of every task's `seeds` networks, all trained as one ensemble, each at its better learning rate."""
    data = [_together(tasks, part) for part in ("learn", "choose", "judge")]
    members = [
        Member(task.learn.X.shape[-1], task.latent, task.learn.Y.shape[-1], seed, number, rate)
        for number, task in enumerate(tasks)
        for seed in range(seeds)
        for rate in RATES_FROM_RANDOM
    ]
    ensemble = SumformerEnsemble(members, hidden, depth, "silu", mean=True).to(device)
    recipe = Recipe(epochs, batch, 1e-2, schedule="one-cycle", standardise=True, validate_every=max(1, epochs // 10))
    history = train(
        ensemble, data[0], data[1], recipe, lambda epoch, of, _: say(f"{len(members)} networks, epoch {epoch} of {of}")
    )
    chosen = history.last.view(-1, len(RATES_FROM_RANDOM)).nan_to_num(float("inf")).argmin(1, keepdim=True)
    judged = _judge(ensemble, data[0], data[2]).view(-1, len(RATES_FROM_RANDOM)).gather(1, chosen)
    return [[float(e) for e in row] for row in judged.view(len(tasks), seeds)]


def from_construction(task: Task, epochs: int, batch: int) -> tuple[float, float]:
    """Error and learning rate of the construction after Adam on its coefficients, with a rate that falls to 0."""
    runs = [(_descend(task, rate, epochs, batch), rate) for rate in RATES_FROM_CONSTRUCTION]
    network, rate = min(runs, key=lambda run: relative_error(run[0], task.choose))
    return relative_error(network, task.judge), rate


def _descend(task: Task, rate: float, epochs: int, batch: int) -> nn.Module:
    network: Any = copy.deepcopy(task.construction.network).requires_grad_(True)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(0)
    per_epoch = -(-len(task.learn.X) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * per_epoch)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(task.learn.X), generator=generator), batch):
            optimiser.zero_grad()
            (network(task.learn.X[rows]) - task.learn.Y[rows]).square().mean().backward()
            optimiser.step()
            schedule.step()
    descended: nn.Module = network
    return descended


def _together(tasks: Sequence[Task], part: str) -> tuple[Tensor, Tensor]:
    """X (T, N, n, d) and Y (T, N, n, widest), padded by zeros."""
    samples: list[Sample] = [getattr(task, part) for task in tasks]
    width = max(sample.Y.shape[-1] for sample in samples)
    Y = [nn.functional.pad(sample.Y, (0, width - sample.Y.shape[-1])) for sample in samples]
    return torch.stack([sample.X for sample in samples]), torch.stack(Y)


@torch.no_grad()
def _judge(ensemble: SumformerEnsemble, learned: tuple[Tensor, Tensor], judge: tuple[Tensor, Tensor]) -> Tensor:
    """‖Ŷ − Y‖ / ‖Y‖ of every member, one after the other to save memory."""
    flat = ensemble.flat.detach()
    X, Y, X_judge, Y_judge = (part.to(flat) for part in (*learned, *judge))
    data, errors = StandardData(X, Y, True), []
    for row, member in zip(torch.split(flat, 1), ensemble.members, strict=True):
        which = torch.tensor([member.data], device=flat.device)
        Z = data.outputs(ensemble.evaluate(row, data.inputs(X_judge[which], which)), which)
        errors.append((Z - Y_judge[which]).double().norm() / Y_judge[which].double().norm())
    return torch.stack(errors).cpu()

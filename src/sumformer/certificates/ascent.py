"""Gradient ascent on |f − N| over the positions and the counts of multisets, a step at a time while there is time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sumformer.certificates.attack_inputs import InputSpace, Multisets, join
from sumformer.certificates.turns import QUICK

Errors = Callable[[Tensor, Tensor], Tensor]  # points (batch, m, d), weights (batch, m) → ‖f − N‖_∞ (batch,)

GRADIENT = 4  # evaluations that one with its gradient costs
FEWEST_STEPS = 8  # that are worth their time


@dataclass(frozen=True)
class Climbed:
    """The worst multisets on the way, the worst of all first, and in how many evaluations they were found."""

    batch: Multisets
    trials: int
    finished: bool


def rows_in_time(step: Callable[[int], object], one: float, wanted: int, steps: int, end: float) -> int:
    """How many of the `wanted` multisets there is time to climb from until `end`, none where that is not worth it.

    `one` are the seconds of an evaluation of one. Where these say that time is short, a step of some tells the truth.
    """
    began = time.perf_counter()
    if end - began < FEWEST_STEPS * GRADIENT * one:
        return 0
    if GRADIENT * one * wanted * steps <= end - began:
        return wanted
    some = max(1, min(wanted, int(QUICK / (GRADIENT * one))))
    step(some)
    now = time.perf_counter()
    return max(1, min(wanted, int((end - now) / steps * some / (now - began))))


def slopes(errors: Errors, points: Tensor, logits: Tensor, batch: Multisets) -> tuple[Tensor, list[Tensor | None]]:
    """The errors, and their gradients with respect to points and logits; no gradients where N is flat."""
    leaf = replace(batch, points=points.clone().requires_grad_(), logits=logits.clone().requires_grad_())
    found = errors(leaf.points, leaf.relaxed())
    if not found.requires_grad:
        return found, []
    return found.detach(), list(torch.autograd.grad(found.sum(), (leaf.points, leaf.logits), allow_unused=True))


def climb(errors: Errors, space: InputSpace, start: Multisets, rows: int, steps: int, end: float) -> Climbed:
    """Adam on |f − N| over points (projected to the box) and ℓ, from `start` and from places near it, `rows` in all."""
    low, high = space.bounds
    radius = (high - low) / 2
    near = shaken(space, start)
    of_start = min(len(start), (rows + 1) // 2)
    batch = join(start[:of_start], near[: min(rows - of_start, of_start)])
    points, logits = batch.points, batch.logits
    best = torch.full((len(batch),), -1.0, dtype=torch.float64)
    best_points, best_logits = points, logits
    moments = [torch.zeros_like(t) for t in (points, points, logits, logits)]
    done = 0
    for step in range(steps):
        found, gradients = slopes(errors, points, logits, batch)
        done = step + 1
        if not gradients:
            break
        better = found > best
        best = torch.where(better, found, best)
        best_points = torch.where(better[:, None, None], points, best_points)
        best_logits = torch.where(better[:, None], logits, best_logits)
        rate = 0.1 * 0.01 ** (step / steps)
        moves = [_adam(g, moments[2 * i : 2 * i + 2], step) for i, g in enumerate(gradients)]
        points = space.project(points + rate * radius * moves[0])
        logits = (logits + 10 * rate * moves[1]).clamp(-80, 80)
        if time.perf_counter() > end:
            break
    worst_first = best.argsort(descending=True, stable=True)
    climbed = Multisets("ascent", best_points, best_logits, batch.n)[worst_first]
    return Climbed(climbed, len(batch) * done, time.perf_counter() <= end and rows >= 2 * len(start))


def shaken(space: InputSpace, batch: Multisets) -> Multisets:
    """Multisets near these."""
    low, high = space.bounds
    noise = torch.randn(batch.points.shape, generator=space.generator, dtype=torch.float64)
    points = space.project(batch.points + 0.1 * (high - low) / 2 * noise)
    tilt = torch.randn(batch.logits.shape, generator=space.generator, dtype=torch.float64)
    return Multisets(batch.kind, points, batch.logits + tilt, batch.n)


def _adam(gradient: Tensor | None, moments: list[Tensor], step: int) -> Tensor:
    """m̂/√v̂, moments updated in place; numbers that are none count as 0."""
    first, second = moments
    g = torch.zeros_like(first) if gradient is None else gradient.nan_to_num(0.0, 0.0, 0.0)
    g = g / g.flatten(1).norm(dim=1).clamp_min(1e-300).reshape(-1, *[1] * (g.dim() - 1))
    first.mul_(0.7).add_(0.3 * g)
    second.mul_(0.9).add_(0.1 * g**2)
    return (first / (1 - 0.7 ** (step + 1))) / ((second / (1 - 0.9 ** (step + 1))).sqrt() + 1e-12)

"""What a fit is worth on sets it has not seen: error with a confidence interval, worst sets, equivariance error, time.

Regression: error = sqrt(mean ((ŷ − y)/σ)²), σ the deviation of the training targets: 1 is what the best constant gets.
Classification: error = the share of wrong labels. Intervals are 95 %, by bootstrap over sets (tokens of one set are not
independent), and for labels of sets by Wilson's formula, which does not shrink to a point when nothing is wrong. They
are widened to hold the error itself, where resampling or rounding would leave it out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median
from typing import Any

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.learn.architectures import parameter_count
from sumformer.learn.fitted import Fitted
from sumformer.learn.sets import Sets, Task
from sumformer.learn.start import network_dtype
from sumformer.learn.training import reproducible
from sumformer.testing import equivariance_error

RESAMPLES, FEWEST_RESAMPLES = 2000, 400
DRAWS, DRAWS_AT_ONCE = 4 * 10**7, 10**6
WORST = 5
Z = 1.959963984540054


@dataclass(frozen=True)
class Examination:
    """The numbers of `report`, and what pictures are drawn from: outputs (logits) and the error of each set."""

    sets: Sets
    places: Tensor
    outputs: Tensor
    set_errors: Tensor
    token_errors: Tensor
    report: dict[str, Any]


def examine(fitted: Fitted, sets: Sets, places: Tensor | None = None) -> Examination:
    """`fitted` on `sets`, with the threads it was trained with; `places` are their numbers in the file."""
    with reproducible(fitted.settings):
        return _examine(fitted, sets, places)


def _examine(fitted: Fitted, sets: Sets, places: Tensor | None) -> Examination:
    if sets.y is None or sets.task is None:
        raise InputError("examine: expected sets with targets")
    if not len(sets):
        raise InputError("examine: expected at least one set")
    sets = _as_trained(fitted.task, sets, sets.task, sets.y)
    where = torch.arange(len(sets)) if places is None else places
    outputs = fitted.outputs(sets)
    each = _errors(fitted, sets, outputs)  # (N, n) or (N,): squared and standardised, or wrong or not
    real = sets.keep if fitted.task.per_token else torch.ones(len(sets), 1, dtype=torch.bool)
    table = torch.where(real, each.reshape(len(sets), -1), 0.0)
    sums, counts = table.sum(1), real.sum(1).double()
    means = sums / counts.clamp(min=1)
    square = fitted.task.classes is None
    set_errors = means.sqrt() if square else means
    interval = _interval(sums, counts, square, wilson=not square and not fitted.task.per_token)
    total = float(sums.sum() / counts.sum())
    report: dict[str, Any] = {
        "error": sqrt(total) if square else total,
        "interval": interval,
        "sets": len(sets),
        **_more(fitted, sets, outputs, total),
        "worst": _worst(sets, where, set_errors, table),
        "parameters": parameter_count(fitted.network),
        "equivariant": bool(fitted.network.equivariant),
        **_equivariance(fitted, sets),
        **_times(fitted, sets),
    }
    return Examination(sets, where, outputs, set_errors, table, report)


def _as_trained(task: Task, sets: Sets, given: Task, y: Tensor) -> Sets:
    """The labels numbered as the network numbers them; one that it has never seen is −1, and always wrong."""
    if (given.d, given.k, given.per_token, given.kind) != (task.d, task.k, task.per_token, task.kind):
        what = f"tokens of width {task.d} and {task.describe()}; got width {given.d} and {given.describe()}"
        raise InputError(f"examine: the network is for {what} (`per` and `task` settle how targets are read)")
    if task.classes is None or given.classes is None or task.classes == given.classes:
        return sets
    known = {label: i for i, label in enumerate(task.classes)}
    return replace(sets, y=torch.tensor([known.get(label, -1) for label in given.classes])[y], task=task)


def _errors(fitted: Fitted, sets: Sets, outputs: Tensor) -> Tensor:
    if sets.y is None:
        raise InputError("examine: expected sets with targets")
    if fitted.task.classes is not None:
        return (outputs.argmax(-1) != sets.y).double()
    scale = outputs.new_tensor(fitted.standardisation.y.scale)
    return ((outputs - sets.y) / scale).square().mean(-1)


def _interval(sums: Tensor, counts: Tensor, square: bool, wilson: bool) -> list[float] | None:
    """95 % of the errors of sets drawn again from these; None from a single set, which says nothing of others."""
    n, p = float(counts.sum()), float(sums.sum() / counts.sum())
    if wilson:
        centre, spread = p + Z**2 / (2 * n), Z * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        low, high = max(0.0, (centre - spread) / (1 + Z**2 / n)), min(1.0, (centre + spread) / (1 + Z**2 / n))
        return [min(low, p), max(high, p)]
    if len(sums) < 2:
        return None
    generator = torch.Generator().manual_seed(0)
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, DRAWS // len(sums)))
    parts = []
    slab = max(1, DRAWS_AT_ONCE // len(sums))
    for start in range(0, resamples, slab):
        index = torch.randint(len(sums), (min(slab, resamples - start), len(sums)), generator=generator)
        parts.append(sums[index].sum(1) / counts[index].sum(1).clamp(min=1))
    means = torch.cat(parts)
    low, high = (float(q) for q in (means.sqrt() if square else means).quantile(means.new_tensor([0.025, 0.975])))
    error = sqrt(p) if square else p
    return [min(low, error), max(high, error)]


def _more(fitted: Fitted, sets: Sets, outputs: Tensor, total: float) -> dict[str, Any]:
    """In the data's own units, and beside the best constant."""
    if sets.y is None:
        return {}
    y = sets.y[sets.keep] if fitted.task.per_token else sets.y
    if fitted.task.classes is not None:
        most = float(torch.bincount(y[y >= 0], minlength=len(fitted.task.classes)).max())
        return {"accuracy": 1 - total, "baseline": 1 - most / y.numel()}
    out = outputs[sets.keep] if fitted.task.per_token else outputs
    scale, shift = (y.new_tensor(v) for v in (fitted.standardisation.y.scale, fitted.standardisation.y.shift))
    baseline = float(((y - shift) / scale).square().mean().sqrt())
    off, centred = (out - y) / scale, (y - shift) / scale
    residual, spread = off.square().sum(0), (centred - centred.mean(0)).square().sum(0)
    return {
        "rmse": (off.square().mean(0).sqrt() * scale).tolist(),
        "r2": [1 - float(a / b) if b > 0 else None for a, b in zip(residual, spread, strict=True)],
        "baseline": baseline,
    }


def _worst(sets: Sets, where: Tensor, errors: Tensor, table: Tensor) -> list[dict[str, Any]]:
    """Those with the largest errors; a set without an error is not among them."""
    out = []
    for i in worst_places(errors, WORST):
        entry: dict[str, Any] = {"set": int(where[i]), "error": float(errors[i]), "tokens": int(sets.lengths[i])}
        out.append(entry | ({"token": int(table[i].argmax())} if table.shape[1] > 1 else {}))
    return out


def worst_places(errors: Tensor, most: int) -> list[int]:
    """Of the largest errors that are not 0."""
    order = errors.argsort(descending=True, stable=True)
    return [int(i) for i in order[:most] if errors[i] != 0]


def _equivariance(fitted: Fitted, sets: Sets) -> dict[str, Any]:
    """On up to 16 sets of the commonest length, without padding."""
    length = int(sets.lengths.mode().values)
    index = (sets.lengths == length).nonzero().flatten()[:16]
    if length < 2:
        return {"equivariance_error": 0.0}
    inputs = fitted.standardisation.inputs(sets.subset(index), network_dtype(fitted.network))
    real = inputs[sets.keep[index]].reshape(len(index), length, -1)
    return {"equivariance_error": equivariance_error(fitted.network.eval(), real)}


def _times(fitted: Fitted, sets: Sets) -> dict[str, float]:
    """Medians of up to nine repetitions: per set in a batch, and for one set alone."""
    batch = sets.subset(torch.arange(min(len(sets), 256)))
    one = sets.subset(torch.arange(1))
    return {
        "milliseconds_per_set": 1e3 * _seconds(fitted, batch) / len(batch),
        "milliseconds_one_set": 1e3 * _seconds(fitted, one),
    }


def _seconds(fitted: Fitted, sets: Sets) -> float:
    times: list[float] = []
    for repeat in range(10):
        start = time.perf_counter()
        fitted.outputs(sets)
        elapsed = time.perf_counter() - start
        if repeat or elapsed > 1:
            times.append(elapsed)
        if sum(times) > 1:
            break
    return median(times)

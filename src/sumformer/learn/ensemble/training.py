"""Train M models on their data sets as one program; member m's run depends on nothing but its own seed and data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.errors import ShapeError
from sumformer.learn.ensemble.adam import FlatAdamW
from sumformer.learn.ensemble.recipe import Recipe
from sumformer.learn.ensemble.sumformers import SumformerEnsemble

Progress = Callable[[int, int, Tensor], None]  # epochs done, epochs, relative errors (M,)
VALIDATED = 2**22  # tokens × members evaluated at once


@dataclass(frozen=True)
class History:
    """Relative L² validation errors (evaluations, M) at `epochs`; the start is epoch 0."""

    epochs: tuple[int, ...]
    errors: Tensor
    seconds: float
    steps: int

    @property
    def best(self) -> Tensor:
        """The least error of every member; NaN and ∞ where it never had one."""
        return self.errors.nan_to_num(float("inf")).amin(0)

    @property
    def last(self) -> Tensor:
        return self.errors[-1]


def train(
    ensemble: SumformerEnsemble,
    data: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    recipe: Recipe,
    progress: Progress | None = None,
) -> History:
    """`data` and `validation`: X (T, N, n, d) and Y (T, N, n, d_out); member m uses data set `members[m].data`.

    Narrower data sets are padded by zeros to the ensemble's d and d_out. The order of epoch e is drawn from the
    member's seed and e.
    """
    run = _Run(ensemble, data, validation, recipe)
    start, epochs, errors = time.perf_counter(), [0], [run.validate()]
    with _matmul(recipe.tf32):
        for epoch in range(1, recipe.epochs + 1):
            run.epoch(epoch)
            if epoch % recipe.validate_every == 0 or epoch == recipe.epochs:
                epochs.append(epoch)
                errors.append(run.validate())
                if progress is not None:
                    progress(epoch, recipe.epochs, errors[-1])
    return History(tuple(epochs), torch.stack(errors), time.perf_counter() - start, recipe.epochs * run.per_epoch)


class _Run:
    """The state of one training run, all of it on the ensemble's device."""

    def __init__(
        self,
        ensemble: SumformerEnsemble,
        data: tuple[Tensor, Tensor],
        validation: tuple[Tensor, Tensor],
        recipe: Recipe,
    ) -> None:
        self.ensemble, self.recipe = ensemble, recipe
        device, dtype = ensemble.flat.device, ensemble.flat.dtype
        X, Y = (part.to(device, dtype) for part in data)
        self.X_val, self.Y_val = (part.to(device, dtype) for part in validation)
        _check(ensemble, X, Y)
        _check(ensemble, self.X_val, self.Y_val)
        self.N = X.shape[1]
        self.per_epoch = max(1, self.N // recipe.batch)
        self.batch = min(recipe.batch, self.N)
        self.steps = recipe.epochs * self.per_epoch
        members = ensemble.members
        self.which = torch.tensor([member.data for member in members], device=device)
        self.widths = torch.tensor([member.d_out for member in members], device=device, dtype=dtype)
        self.shift, self.scale = _standard(X) if recipe.standardise else _nothing(X)
        self.y_shift, self.y_scale = _standard(Y) if recipe.standardise else _nothing(Y)
        self.X, self.Y = (X - self.shift) / self.scale, (Y - self.y_shift) / self.y_scale
        rates = torch.tensor([[member.learning_rate] for member in members], device=device, dtype=torch.float64)
        self.adam = FlatAdamW(ensemble.flat.data, rates, recipe.betas, recipe.eps, recipe.weight_decay)
        self.number = torch.zeros((), dtype=torch.long, device=device)  # steps made
        self.order = torch.zeros(len(members), self.per_epoch, self.batch, dtype=torch.long, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def epoch(self, epoch: int) -> None:
        """Every member in its own order; what does not fill a batch is left out this time."""
        rows = []
        for member in self.ensemble.members:
            generator = torch.Generator().manual_seed(member.seed * 1_000_003 + epoch)
            rows.append(torch.randperm(self.N, generator=generator)[: self.per_epoch * self.batch])
        self.order.copy_(torch.stack(rows).view_as(self.order))
        if self.order.is_cuda and self.graph is None:
            self.graph = self._capture()
        for _ in range(self.per_epoch):
            self.step() if self.graph is None else self.graph.replay()

    def step(self) -> None:
        """One optimiser step of every member; only tensors on the device decide what it does."""
        flat = self.ensemble.flat
        rows = self.order.index_select(1, (self.number % self.per_epoch)[None])[:, 0]
        X, Y = self.X[self.which[:, None], rows], self.Y[self.which[:, None], rows]
        gap = self.ensemble(X) - Y
        per_member = gap.square().sum((1, 2, 3)) / (self.widths * (X.shape[1] * X.shape[2]))
        (gradient,) = torch.autograd.grad(per_member.sum(), flat)
        self.adam.step(gradient, self.number, self.recipe.factor(self.number, self.steps))
        self.number += 1

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step as a CUDA graph; warm-up steps are undone."""
        state = [t.clone() for t in self._state]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        for tensor, before in zip(self._state, state, strict=True):
            tensor.copy_(before)
        return graph

    @property
    def _state(self) -> tuple[Tensor, ...]:
        return self.ensemble.flat.data, self.adam.first, self.adam.second, self.number

    @torch.no_grad()
    def validate(self) -> Tensor:
        """‖Ŷ − Y‖ / ‖Y‖ of every member on its validation data, (M,)."""
        M, size = len(self.which), max(1, VALIDATED // (len(self.which) * self.X_val.shape[2]))
        gap = torch.zeros(M, dtype=torch.float64, device=self.X_val.device)
        norm = torch.zeros_like(gap)
        for start in range(0, self.X_val.shape[1], size):
            X, Y = (part[self.which, start : start + size] for part in (self.X_val, self.Y_val))
            Z = self.ensemble((X - self.shift[self.which]) / self.scale[self.which])
            Z = Z * self.y_scale[self.which] + self.y_shift[self.which]
            gap += (Z - Y).double().square().sum((1, 2, 3))
            norm += Y.double().square().sum((1, 2, 3))
        return (gap / norm).sqrt().cpu()


def _check(ensemble: SumformerEnsemble, X: Tensor, Y: Tensor) -> None:
    if X.dim() != 4 or X.shape[-1] != ensemble.d:
        raise ShapeError("train", f"X of shape (data sets, N, n, {ensemble.d})", X.shape)
    if Y.shape != (*X.shape[:3], ensemble.d_out):
        raise ShapeError("train", f"Y of shape {(*X.shape[:3], ensemble.d_out)}", Y.shape)


def _standard(part: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every coordinate of every data set; padding has deviation 0 and stays as it is."""
    mean, deviation = part.mean((1, 2), keepdim=True), part.std((1, 2), keepdim=True)
    return mean, torch.where(deviation > 0, deviation, 1.0)


def _nothing(part: Tensor) -> tuple[Tensor, Tensor]:
    shape = (part.shape[0], 1, 1, part.shape[3])
    return part.new_zeros(shape), part.new_ones(shape)


@contextmanager
def _matmul(tf32: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32 or before
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before

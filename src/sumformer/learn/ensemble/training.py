"""Train M models on their data sets as one program; member m's run depends on nothing but its own seed and data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from sumformer.errors import InputError, ShapeError
from sumformer.learn.ensemble.block import Block
from sumformer.learn.ensemble.members_over_threads import over_threads, slices
from sumformer.learn.ensemble.recipe import Recipe
from sumformer.learn.ensemble.standard_data import StandardData
from sumformer.learn.ensemble.sumformers import SumformerEnsemble

Progress = Callable[[int, int, Tensor], None]  # epochs done, epochs, relative errors (M,)


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
    member's seed and e. On a CPU the members are spread over torch's threads.
    """
    device, dtype = ensemble.flat.device, ensemble.flat.dtype
    X, Y = (part.to(device, dtype) for part in data)
    held = validation[0].to(device, dtype), validation[1].to(device, dtype)
    _check(ensemble, X, Y)
    _check(ensemble, *held)
    M, workers, chosen = len(ensemble.members), 1, [slice(None)]
    if device.type == "cpu":
        workers = min(torch.get_num_threads(), M)
        chosen = slices(M, min(recipe.batch, X.shape[1]) * X.shape[2] * ensemble.hidden, workers)
    seen = StandardData(X, Y, recipe.standardise)
    blocks = [Block(ensemble, part, seen, held, recipe) for part in chosen]
    with over_threads(workers) as pool, _matmul(recipe.tf32):
        apply = map if pool is None else pool.map

        def validate() -> Tensor:
            return torch.cat(list(apply(Block.validate, blocks)))

        start, epochs, errors = time.perf_counter(), [0], [validate()]
        for epoch in range(1, recipe.epochs + 1):
            list(apply(partial(Block.epoch, epoch=epoch), blocks))
            if epoch % recipe.validate_every == 0 or epoch == recipe.epochs:
                epochs.append(epoch)
                errors.append(validate())
                if progress is not None:
                    progress(epoch, recipe.epochs, errors[-1])
    return History(tuple(epochs), torch.stack(errors), time.perf_counter() - start, blocks[0].steps)


def _check(ensemble: SumformerEnsemble, X: Tensor, Y: Tensor) -> None:
    if X.dim() != 4 or X.shape[-1] != ensemble.d:
        raise ShapeError("train", f"X of shape (data sets, N, n, {ensemble.d})", X.shape)
    if Y.shape != (*X.shape[:3], ensemble.d_out):
        raise ShapeError("train", f"Y of shape {(*X.shape[:3], ensemble.d_out)}", Y.shape)
    if not X.numel():
        raise ShapeError("train", "X with at least one sequence and one token", X.shape)
    if not bool(X.isfinite().all() & Y.isfinite().all()):
        raise InputError("train: expected finite data, got NaN or ∞")
    for member in ensemble.members:
        if not 0 <= member.data < len(X):
            raise InputError(f"train: expected data sets 0 to {len(X) - 1}, as many as there are, got {member}")


@contextmanager
def _matmul(tf32: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32 or before
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before

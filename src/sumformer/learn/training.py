"""θ ← θ − lr(t) · AdamW(∇ mean loss of a batch), until the validation loss has not improved for `patience` epochs.

lr(t) rises over the first 5 % of the steps and falls as a cosine. Batches are a function of (seed, epoch).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, cos, isfinite, pi

import torch
from torch import Tensor, nn

from sumformer.errors import DivergedError
from sumformer.learn.interruption import Stop
from sumformer.learn.loss import mean_loss
from sumformer.learn.sets import Sets, Task, shortened
from sumformer.learn.settings import Settings
from sumformer.learn.splitting import permutation
from sumformer.learn.standardisation import Standardisation
from sumformer.learn.state import State

WARM_UP = 0.05
EVALUATION_BATCH = 256


@dataclass(frozen=True)
class Batches:
    """Sets ready for a network: standardised, on its device."""

    x: Tensor
    keep: Tensor | None
    y: Tensor
    ends: Tensor
    task: Task
    standardisation: Standardisation

    @classmethod
    def prepare(cls, sets: Sets, standardisation: Standardisation, dtype: torch.dtype, device: str) -> Batches:
        if sets.y is None or sets.task is None:
            raise TypeError("training needs targets")
        y = sets.y if sets.task.classes is not None else standardisation.y.apply(sets.y).to(dtype)
        mask = sets.mask()
        x = standardisation.inputs(sets, dtype).to(device)
        keep = None if mask is None else mask.to(device)
        return cls(x, keep, y.to(device), sets.ends.to(device), sets.task, standardisation)

    def __len__(self) -> int:
        return self.x.shape[0]

    def loss(self, module: nn.Module, index: Tensor | slice) -> tuple[Tensor, int]:
        """The mean loss of some of the sets, cut to the longest of them, and over how many tokens or sets."""
        x, y, keep = self.x[index], self.y[index], None
        if self.keep is not None:
            end = shortened(int(self.ends[index].max()), x.shape[1])
            x, keep = x[:, :end], self.keep[index][:, :end]
            y = y[:, :end] if self.task.per_token else y
        out = self.standardisation.outputs(module(x, attention_mask=keep))
        return mean_loss(self.task, out, y, keep)

    @torch.no_grad()
    def total_loss(self, module: nn.Module) -> float:
        """The mean loss of all sets."""
        parts = [self.loss(module, slice(i, i + EVALUATION_BATCH)) for i in range(0, len(self), EVALUATION_BATCH)]
        return sum(float(loss) * count for loss, count in parts) / max(sum(count for _, count in parts), 1)

    def constant_loss(self, judged: Batches) -> float:
        """The mean loss on `judged` of the constant these sets suggest: the mean of y, or the shares of the classes."""
        shape = judged.y.shape[: 2 if self.task.per_token else 1]
        if self.task.classes is None:
            out = judged.y.new_zeros(self.task.k)
        else:
            labels = self.y[self.keep] if self.task.per_token and self.keep is not None else self.y.flatten()
            counts = torch.bincount(labels.cpu(), minlength=len(self.task.classes)) + 1.0  # none is impossible
            out = (counts / counts.sum()).log().to(judged.y.device)
        return float(mean_loss(self.task, out.expand(*shape, -1), judged.y, judged.keep)[0])


@dataclass(frozen=True)
class Progress:
    """What is reported after each epoch and now and then in between."""

    epoch: int
    epochs: int
    batch: int
    batches: int
    train_loss: float
    validation_loss: float
    best_epoch: int
    seconds_left: float


def rate(settings: Settings, step: int, steps: int) -> float:
    """lr(t)."""
    warm = max(1, round(WARM_UP * steps))
    peak = settings.learning_rate or 0.0
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (0.01 + 0.99 * 0.5 * (1 + cos(pi * (step - warm) / max(1, steps - warm))))


def new_state(module: nn.Module, settings: Settings) -> State:
    """Before the first step."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, weight_decay=settings.weight_decay, fused=True)
    return State(module, optimiser, {k: v.detach().clone() for k, v in module.state_dict().items()})


def train(
    state: State,
    train_sets: Batches,
    validation_sets: Batches,
    settings: Settings,
    save: Callable[[], None] = lambda: None,
    report: Callable[[Progress], None] = lambda _: None,
    stop: Stop | None = None,
    save_every: float = 5.0,
) -> bool:
    """Advance `state` to the end, calling `save` on the way. True when it got there, False when `stop` was asked."""
    epochs, patience = settings.epochs or 1, settings.patience or 1
    batches = ceil(len(train_sets) / settings.batch_size)
    started = last_saved = last_told = time.perf_counter()
    first = state.epoch * batches + state.batch
    before = state.seconds
    if not state.history:
        _evaluate(state, train_sets, validation_sets)

    def tell(now: float) -> None:
        done = state.epoch * batches + state.batch
        pace = (now - started) / max(done - first, 1)
        shown = state.loss_sum / state.loss_count if state.loss_count else state.history[-1]["train"]
        left = pace * max(epochs * batches - done, 0)
        latest = state.history[-1]["validation"]
        report(Progress(state.epoch, epochs, state.batch, batches, shown, latest, state.best_epoch, left))

    while state.epoch < epochs and state.epoch - state.best_epoch < patience:
        order = permutation(len(train_sets), "order", settings.seed, state.epoch).to(train_sets.x.device)
        while state.batch < batches:
            index = order[state.batch * settings.batch_size : (state.batch + 1) * settings.batch_size]
            loss, count = _finite_loss(state, train_sets, index)
            # Weights are saved here, where their loss is known to be finite: a bad step never replaces a good state.
            now = time.perf_counter()
            state.seconds = before + now - started
            stopping = stop is not None and stop.asked
            if stopping or now - last_saved >= save_every:
                save()
                last_saved = time.perf_counter()
            if stopping:
                return False
            _step(state, loss, count, rate(settings, state.epoch * batches + state.batch, epochs * batches))
            if now - last_told > 0.5:
                tell(now)
                last_told = now
        state.epoch, state.batch = state.epoch + 1, 0
        _evaluate(state, train_sets, validation_sets)
        tell(time.perf_counter())
    save()
    return True


def _finite_loss(state: State, data: Batches, index: Tensor) -> tuple[Tensor, int]:
    loss, count = data.loss(state.module, index)
    if not isfinite(float(loss.detach())):
        raise _diverged(state, float(loss.detach()))
    return loss, count


def _step(state: State, loss: Tensor, count: int, lr: float) -> None:
    for group in state.optimiser.param_groups:
        group["lr"] = lr
    state.optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    state.optimiser.step()
    state.batch += 1
    state.loss_sum, state.loss_count = state.loss_sum + float(loss.detach()) * count, state.loss_count + count


def _evaluate(state: State, train_sets: Batches, validation_sets: Batches) -> None:
    """Close an epoch: both losses into the history, the weights kept if they are the best."""
    mean = state.loss_sum / state.loss_count if state.loss_count else train_sets.total_loss(state.module)
    loss = validation_sets.total_loss(state.module)
    if not isfinite(loss) or not isfinite(mean):
        raise _diverged(state, loss)
    state.history.append({"epoch": state.epoch, "train": mean, "validation": loss})
    state.keep_best(loss)
    state.loss_sum, state.loss_count = 0.0, 0


def _diverged(state: State, value: float) -> DivergedError:
    if not state.history:
        return DivergedError(f"the loss is {value} before the first step: look for extreme values in x and y")
    return DivergedError(
        f"the loss became {value} in epoch {state.epoch + (state.batch > 0)}, step {state.batch}: use a smaller "
        "learning rate, or look for extreme values in y"
    )


@contextmanager
def reproducible(settings: Settings) -> Iterator[None]:
    """Within, torch has the recorded number of threads and, on a CPU, only algorithms that repeat themselves."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(settings.threads or threads)
    torch.use_deterministic_algorithms(settings.device == "cpu" or deterministic)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)

"""sup_X ‖F(X) − N(X)‖_∞ from below for maps of lists: functions of positions, and functions known only by their values.

Random lists, corners and faces, lists of few distinct tokens, then gradient ascent on |F − N| over the tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor

from sumformer.certificates.ascent import rows_in_time
from sumformer.certificates.attack_inputs import InputSpace
from sumformer.certificates.timed_search import TimedSearch
from sumformer.certificates.turns import Turn, Turns
from sumformer.certificates.witness import Witness
from sumformer.targets.positions import with_positions

MOST_TOKENS = 64
NUMBERS = 2**18  # of one batch
KEPT = 16

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class ListWitness(Witness):
    """The list with the own token moved to the front; a function without a formula is what it computes."""

    def balls(self, arb: Any) -> list[Any]:
        return super().balls(arb) if hasattr(self.target, "expression") else [arb(v) for v in self.wanted]


class ListSearch(TimedSearch):
    """The worst lists so far, by number of tokens."""

    def __init__(self, target: Any, network: Any, effort: Any, seed: int, progress: Progress | None = None) -> None:
        super().__init__(effort)
        self.target, self.network, self.progress = target, network, progress
        self.generator = torch.Generator().manual_seed(seed)
        self.best: dict[int, tuple[Tensor, Tensor]] = {}
        self.worst = -1.0
        most = min(target.tokens.maximum, max(target.tokens.minimum, MOST_TOKENS))
        self.space = InputSpace(target.input_box, target.tokens, network.outside, most, self.generator)
        self.found: list[list[tuple[Tensor, Tensor]]] = []

    def run(self, start: float, seconds: float) -> None:
        """All lists, the longest first."""
        batches = sorted(self.batches(), key=lambda batch: (batch[1].shape[1] == 1, -batch[1].shape[1]))
        self.search(Turns([self.turn(kind, X) for kind, X in batches], self.costs), start, seconds, witness=2)

    def turn(self, kind: str, X: Tensor) -> Turn:
        found: list[tuple[Tensor, Tensor]] = []
        self.found.append(found)
        n, most = X.shape[1], max(1, NUMBERS // X[0].numel())
        return Turn(kind, n, n, len(X), most, lambda rows: found.append(self.look(kind, X[rows])))

    def batches(self) -> Iterator[tuple[str, Tensor]]:
        for n in (int(k) for k in self.space.counts):
            size = max(4, min(self.effort.size, NUMBERS // (n * self.space.box.d)))
            corners = self.space.corners()
            picked = (self.space.random(size, n) * len(corners)).long()
            few = self.space.faces(size, 2).gather(
                1, (self.space.random(size, n) * 2).long()[..., None].expand(-1, -1, self.space.box.d)
            )
            yield "random", self.space.uniform(size, n)
            yield "faces", self.space.faces(size, n)
            yield "corners", corners[picked]
            yield "two points", few

    @torch.no_grad()
    def look(self, kind: str, X: Tensor) -> tuple[Tensor, Tensor]:
        """The errors of some lists, each at its worst token, and these lists."""
        errors = self.errors(X).amax(1)
        self.trials += len(X)
        worst = float(errors.max())
        self.worst = max(self.worst, worst)
        self.by_kind[kind] = max(self.by_kind.get(kind, 0.0), worst)
        if self.progress is not None:
            self.progress(kind, self.worst)
        return errors, X

    def settle(self) -> None:
        """Remember the worst of what was looked at."""
        for pieces in self.found:
            if pieces:
                errors, X = (torch.cat(parts) for parts in zip(*pieces, strict=True))
                found, rows = errors.topk(min(KEPT, len(X)))
                X, n = X[rows], X.shape[1]
                if n in self.best:
                    found, X = torch.cat([self.best[n][0], found]), torch.cat([self.best[n][1], X])
                    found, rows = found.topk(min(KEPT, len(found)))
                    X = X[rows]
                self.best[n] = found, X
                pieces.clear()

    def ascend(self, end: float) -> None:
        for _ in range(self.effort.rounds):
            for n in sorted(self.best, key=lambda n: -float(self.best[n][0][0])):
                X = self.best[n][1]
                step = partial(self._step, X)
                rows = rows_in_time(step, self.costs.of(n), 2 * len(X), self.effort.steps, end)
                if rows:
                    turn = self.turn("ascent", self.climb(X, rows, end))
                    turn.take(self.costs, end)
                    Turns([turn], self.costs).run(end)
                    self.settle()
                self.complete = self.complete and rows == 2 * len(X) and time.perf_counter() <= end

    def _step(self, X: Tensor, rows: int) -> None:
        self.slopes(X[torch.arange(rows) % len(X)])

    def errors(self, X: Tensor) -> Tensor:
        """‖F(X)_i − N(X)_i‖_∞, (batch, n); ∞ where N is not finite, −1 where F alone is not."""
        wanted = self.target(X)
        got = self.network(X.to(self.network.outside)).to(X)
        gap = torch.where(wanted.isfinite().all(-1), (wanted - got).abs().amax(-1), -1.0)
        return torch.where(got.isfinite().all(-1), gap, inf)

    def climb(self, X: Tensor, rows: int, end: float) -> Tensor:
        """Lists with larger errors than these and those near them, `rows` in all."""
        low, high = self.space.bounds
        noise = torch.randn(X.shape, generator=self.generator, dtype=X.dtype)
        X = torch.cat([X, self.space.project(X + 0.05 * (high - low) * noise)])[:rows]
        best = torch.full((len(X),), -1.0, dtype=X.dtype)
        kept = X
        for step in range(self.effort.steps):
            error, gradient = self.slopes(X)
            better = error > best
            best = torch.where(better, error, best)
            kept = torch.where(better[:, None, None], X, kept)
            if gradient is None:
                break
            rate = 0.1 * 0.01 ** (step / self.effort.steps)
            X = self.space.project(X + rate * (high - low) * gradient.sign())
            self.trials += len(X)
            if time.perf_counter() > end:
                break
        return kept

    def slopes(self, X: Tensor) -> tuple[Tensor, Tensor | None]:
        """The errors of lists, and the gradients of these, where there are any."""
        leaf = X.clone().requires_grad_()
        error = self.errors(leaf).amax(1)
        if not error.requires_grad:
            return error, None
        return error.detach(), torch.autograd.grad(error.sum(), leaf)[0].nan_to_num(0.0, 0.0, 0.0)

    @torch.no_grad()
    def witness(self, end: float = inf) -> ListWitness:
        """The worst of all, evaluated once more, whatever the time."""
        X = max(self.best.values(), key=lambda pair: float(pair[0][0]))[1][:1]
        row = int(self.errors(X)[0].argmax())
        wanted, got = self.target(X)[0, row], self.network(X.to(self.network.outside))[0, row]
        tokens = with_positions(X)[0] if getattr(self.target, "positioned", False) else X[0]
        first = torch.cat([tokens[row : row + 1], tokens[:row], tokens[row + 1 :]])
        return ListWitness(self.target, first, (1,) * X.shape[1], tuple(wanted.tolist()), tuple(got.tolist()))

"""sup_X ‖F(X) − N(X)‖_∞ from below for maps of lists: functions of positions, and functions known only by their values.

Random lists, corners and faces, lists of few distinct tokens, then gradient ascent on |F − N| over the tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor

from sumformer.certificates.attack_inputs import InputSpace
from sumformer.certificates.witness import Witness
from sumformer.targets.positions import with_positions

MOST_TOKENS = 64
NUMBERS = 2**18  # of one batch
KEPT = 16


@dataclass(frozen=True, eq=False)
class ListWitness(Witness):
    """The list with the own token moved to the front; a function without a formula is what it computes."""

    def balls(self, arb: Any) -> list[Any]:
        return super().balls(arb) if hasattr(self.target, "expression") else [arb(v) for v in self.wanted]


@dataclass
class ListSearch:
    """The worst lists so far, by number of tokens."""

    target: Any
    network: Any
    size: int
    rounds: int
    steps: int
    generator: torch.Generator

    def __post_init__(self) -> None:
        self.best: dict[int, tuple[Tensor, Tensor]] = {}
        self.by_kind: dict[str, float] = {}
        self.trials = 0
        most = min(self.target.tokens.maximum, max(self.target.tokens.minimum, MOST_TOKENS))
        box, dtype = self.target.input_box, self.network.outside
        self.space = InputSpace(box, self.target.tokens, dtype, most, self.generator)

    def run(self, seconds: float, progress: Callable[[str, float], None] | None) -> float:
        """The worst error found."""
        start, worst = time.perf_counter(), -1.0
        for kind, X in self.batches():
            worst = max(worst, self.look(kind, X))
            if progress is not None:
                progress(kind, worst)
            if time.perf_counter() - start > seconds:
                break
        return worst

    def batches(self) -> Iterator[tuple[str, Tensor]]:
        for n in (int(k) for k in self.space.counts):
            size = max(4, min(self.size, NUMBERS // (n * self.space.box.d)))
            corners = self.space.corners()
            picked = (self.space.random(size, n) * len(corners)).long()
            few = self.space.faces(size, 2).gather(
                1, (self.space.random(size, n) * 2).long()[..., None].expand(-1, -1, self.space.box.d)
            )
            yield "random", self.space.uniform(size, n)
            yield "faces", self.space.faces(size, n)
            yield "corners", corners[picked]
            yield "two points", few
        for _ in range(self.rounds):
            for n in list(self.best):
                yield "ascent", self.climb(self.best[n][1])

    @torch.no_grad()
    def look(self, kind: str, X: Tensor) -> float:
        errors = self.errors(X).amax(1)
        self.trials += len(X)
        found, rows = errors.topk(min(KEPT, len(X)))
        n = X.shape[1]
        if n in self.best:
            found, X = torch.cat([self.best[n][0], found]), torch.cat([self.best[n][1], X[rows]])
            found, rows = found.topk(min(KEPT, len(found)))
        self.best[n] = found, X[rows]
        self.by_kind[kind] = max(self.by_kind.get(kind, 0.0), float(errors.max()))
        return float(found[0])

    def errors(self, X: Tensor) -> Tensor:
        """‖F(X)_i − N(X)_i‖_∞, (batch, n); ∞ where N is not finite, −1 where F alone is not."""
        wanted = self.target(X)
        got = self.network(X.to(self.network.outside)).to(X)
        gap = torch.where(wanted.isfinite().all(-1), (wanted - got).abs().amax(-1), -1.0)
        return torch.where(got.isfinite().all(-1), gap, inf)

    def climb(self, X: Tensor) -> Tensor:
        low, high = self.space.bounds
        noise = torch.randn(X.shape, generator=self.generator, dtype=X.dtype)
        X = torch.cat([X, self.space.project(X + 0.05 * (high - low) * noise)])
        best = torch.full((len(X),), -1.0, dtype=X.dtype)
        kept = X
        for step in range(self.steps):
            leaf = X.clone().requires_grad_()
            error = self.errors(leaf).amax(1)
            better = error.detach() > best
            best = torch.where(better, error.detach(), best)
            kept = torch.where(better[:, None, None], X, kept)
            if not error.requires_grad:
                break
            gradient = torch.autograd.grad(error.sum(), leaf)[0].nan_to_num(0.0, 0.0, 0.0)
            rate = 0.1 * 0.01 ** (step / self.steps)
            X = self.space.project(X + rate * (high - low) * gradient.sign())
        self.trials += len(X) * self.steps
        return kept

    @torch.no_grad()
    def witness(self) -> ListWitness:
        X = max(self.best.values(), key=lambda pair: float(pair[0][0]))[1][:1]
        row = int(self.errors(X)[0].argmax())
        wanted, got = self.target(X)[0, row], self.network(X.to(self.network.outside))[0, row]
        tokens = with_positions(X)[0] if getattr(self.target, "positioned", False) else X[0]
        first = torch.cat([tokens[row : row + 1], tokens[:row], tokens[row + 1 :]])
        return ListWitness(self.target, first, (1,) * X.shape[1], tuple(wanted.tolist()), tuple(got.tolist()))


def search_lists(
    target: Any, network: Any, effort: Any, seed: int, seconds: float, progress: Callable[[str, float], None] | None
) -> ListSearch:
    """A search that has run; `effort` says how much is tried."""
    generator = torch.Generator().manual_seed(seed)
    search = ListSearch(target, network, effort.size, effort.rounds, effort.steps, generator)
    search.run(seconds, progress)
    return search

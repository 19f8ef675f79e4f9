"""sup_X ‖f(X) − N(X)‖_∞ from below: the largest error a search over the domain finds.

Random tokens, corners and faces, and degenerate multisets (one token against n − 1 copies, clusters whose shares of the
total are balanced), then gradient ascent on |f − N| over positions and counts. Kinds of inputs take turns (`turns.py`).
Where Σ costs more than its readers, as on a mesh, f is compared at many tokens of each multiset. Sampling may refute a
certificate, never give one: `violation` evaluates f at the witness in balls before it says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf, isnan, isqrt, nextafter
from typing import Any, Literal

import torch
from torch import Tensor

from sumformer.certificates.ascent import climb, rows_in_time, slopes
from sumformer.certificates.attack_inputs import (
    MANY,
    InputSpace,
    Multisets,
    heaviest,
    join,
    preferred,
    proposals,
    split_heavy,
)
from sumformer.certificates.comparison import Comparison
from sumformer.certificates.list_attack import ListSearch
from sumformer.certificates.listed import Listed
from sumformer.certificates.timed_search import TimedSearch
from sumformer.certificates.turns import Turn, Turns
from sumformer.certificates.witness import Witness
from sumformer.errors import MissingDependencyError
from sumformer.targets import Target
from sumformer.targets.opaque import OpaqueTarget

Progress = Callable[[str, float], None]  # the kind of input just tried, the worst error so far


@dataclass(frozen=True)
class Effort:
    """How much is tried: inputs of a kind, rounds of ascent, steps of each, starts of each."""

    size: int
    rounds: int
    steps: int
    starts: int
    groups: int


EFFORTS = {"quick": Effort(192, 1, 20, 24, 2), "full": Effort(1024, 4, 48, 48, 8)}
KEPT = 64  # of every batch
PADDED = 4  # distinct tokens of a multiset that ascent moves, where n allows them
FEW = 16
CHUNK = 2**21  # numbers in one buffer
DEAR = 2**12  # d' from which Σ costs more than what is read from it
QUERIES = 4  # of a multiset times its tokens, by d': what this costs beside Σ
MOST_QUERIES = 1024
GRACE = 0.2  # seconds after the end, to evaluate witnesses
PRECISION = 256  # bits, of the balls
SINGLE = 2**24  # whole numbers up to here are float32 numbers


@dataclass(frozen=True)
class AttackResult:
    """The worst error found and where, NaN where f is no number at any input; `by_kind`: that of every kind.

    `cut_short`: time ran out before all inputs of this effort were tried, or before ascent could begin with the best of
    all; `not_reached`: the kinds of which none was tried, or none with so many tokens.
    """

    worst: float
    witness: Witness
    trials: int
    seconds: float
    by_kind: dict[str, float]
    cut_short: bool = False
    not_reached: tuple[str, ...] = ()


def attack(
    target: Target | OpaqueTarget,
    network: Any,
    *,
    seconds: float = 5.0,
    seed: int = 0,
    effort: Literal["quick", "full"] = "full",
    progress: Progress | None = None,
) -> AttackResult:
    """The largest ‖f(X) − N(X)‖_∞ found; a function of seed and effort, unless `seconds` cut it short.

    `network` is a sum over tokens (`Network`), or any module of token lists, (X, attention_mask=…) → (batch, n, width).
    """
    start, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)  # thousands of small operations: a second thread only waits
    try:
        if isinstance(target, OpaqueTarget) or target.positioned:
            search: ListSearch | _Search = ListSearch(target, network, EFFORTS[effort], seed, progress)
        else:
            search = _Search(target, network, EFFORTS[effort], seed, progress)
        search.run(start, seconds)
        witness = search.witness(start + seconds)
    finally:
        torch.set_num_threads(threads)
    taken = time.perf_counter() - start
    cut_short, missing = not search.complete, search.not_reached()
    return AttackResult(witness.error, witness, search.trials, taken, search.by_kind, cut_short, missing)


def violation(result: AttackResult, bound: float) -> tuple[bool, float]:
    """Whether the witness refutes `bound`, and its error, rounded down, with f in balls: rounding of f is no alarm."""
    try:
        from flint import arb, ctx
    except ImportError as error:
        raise MissingDependencyError("python-flint", "the re-evaluation of a witness", "certify") from error
    with ctx.workprec(PRECISION):
        if result.worst == inf:  # N is no number; in float64 f may be none either, where a sum of it overflows
            defined = all(f.is_finite() for f in result.witness.balls(arb))
            return defined, inf if defined else 0.0
        gaps = [f - arb(got) for f, got in zip(result.witness.balls(arb), result.witness.got, strict=True)]
        below = [nextafter(float(gap.abs_lower()), -inf) for gap in gaps if gap.is_finite()]
    refined = max([0.0, *below])
    return refined > bound, refined


class _Search(TimedSearch):
    """The state of one attack: the best inputs so far, by number of distinct tokens."""

    def __init__(
        self, target: Target, network: Any, effort: Effort, seed: int, progress: Progress | None = None
    ) -> None:
        self.listed = not hasattr(network, "summarise")
        if self.listed:
            network = Listed(network)
        super().__init__(effort)
        self.target, self.progress = target, progress
        self.compared = Comparison(target, network)
        limit = Listed.most_tokens if self.listed else SINGLE if network.inside == torch.float32 else MANY
        most = min(target.tokens.maximum, max(target.tokens.minimum, limit))
        generator = torch.Generator().manual_seed(seed)
        self.space = InputSpace(target.box, target.tokens, network.outside, most, generator)
        self.latent = max(1, int(network.latent_dimension))
        self.dear = not self.listed and self.latent >= DEAR
        self.best: dict[int, tuple[Tensor, Multisets]] = {}
        self.top: list[tuple[float, Multisets]] = []
        self.worst = -inf
        self.found: list[list[tuple[Tensor, Multisets]]] = []

    def run(self, start: float, seconds: float) -> None:
        """All proposals, those of many tokens first."""
        work = sum(p.numel() for p in self.compared.network.parameters())
        size = max(32, min(self.effort.size, self.effort.size * 2**15 // max(work, 1)))
        queries = min(MOST_QUERIES, isqrt(QUERIES * self.latent)) if self.dear else 0
        batches = sorted(proposals(self.space, self.compared.balance, size, queries), key=preferred)
        self.search(Turns([self.turn(batch) for batch in batches], self.costs), start, seconds, witness=1)

    # ---- errors

    def turn(self, batch: Multisets) -> Turn:
        """`batch` to be looked at, as many at a time as fit into one buffer."""
        m = int(batch.n.max()) if self.listed else batch.m
        found: list[tuple[Tensor, Multisets]] = []
        self.found.append(found)
        most = max(1, CHUNK // (m * self.latent))
        return Turn(batch.kind, batch.m, m, len(batch), most, lambda rows: found.append(self.look(batch[rows])))

    @torch.no_grad()
    def look(self, batch: Multisets) -> tuple[Tensor, Multisets]:
        """The errors of a batch, (batch,), each at its worst token, which is put in front."""
        queries = max(1, min(batch.m, min(QUERIES * self.latent, CHUNK) // batch.m)) if self.dear else 1
        errors, own = self.compared.errors(batch.points, batch.weights(), queries).max(1)
        self.trials += len(batch) * queries
        worst = float(errors.max())
        self.worst = max(self.worst, worst)
        self.by_kind[batch.kind] = max(self.by_kind.get(batch.kind, 0.0), worst)
        if self.progress is not None:
            self.progress(batch.kind, self.worst)
        return errors, batch.own(own) if queries > 1 else batch

    def settle(self) -> None:
        """Remember the best of what was looked at, batch by batch, in whatever pieces that was."""
        for pieces in self.found:
            if not pieces:
                continue
            errors, batch = torch.cat([e for e, _ in pieces]), join(*(b for _, b in pieces))
            found, rows = errors.topk(min(KEPT, len(errors)))
            kept = batch[rows]
            self.top = sorted([*self.top, (float(found[0]), kept[:1])], key=lambda pair: -pair[0])[:FEW]
            for m, some in self.padded(kept):
                self.remember(m, found[some[0]], some[1])
            pieces.clear()

    # ---- ascent

    def ascend(self, end: float) -> None:
        """Rounds of ascent from the best so far, with as many starts as there is time for."""
        for _ in range(self.effort.rounds):
            for group in self.groups():
                tokens = int(group.n.max()) if self.listed else group.m
                step = partial(self._step, group)
                rows = rows_in_time(step, self.costs.of(tokens), 2 * len(group), self.effort.steps, end)
                if rows:
                    found = climb(self.own_errors, self.space, group, rows, self.effort.steps, end)
                    self.trials += found.trials
                    turn = self.turn(found.batch)
                    turn.take(self.costs, end)
                    Turns([turn], self.costs).run(end)
                    self.settle()
                self.complete = self.complete and bool(rows) and found.finished and turn.done == turn.rows

    def own_errors(self, points: Tensor, weights: Tensor) -> Tensor:
        return self.compared.errors(points, weights)[:, 0]

    def _step(self, group: Multisets, rows: int) -> None:
        """A step of ascent from `rows` inputs that leads nowhere, to see how long it takes."""
        some = group[torch.arange(rows) % len(group)]
        slopes(self.own_errors, some.points, some.logits, some)

    def groups(self) -> list[Multisets]:
        """The best inputs of each size, the size with the worst error first."""
        order = sorted(self.best, key=lambda m: -float(self.best[m][0][0]))
        return [self.best[m][1][: self.effort.starts] for m in order[: self.effort.groups]]

    def padded(self, batch: Multisets) -> Iterator[tuple[int, tuple[Tensor, Multisets]]]:
        """Rows by the number of distinct tokens ascent may move: heavy tokens are split until there are enough, and
        of many that weigh nothing the own one is kept.
        """
        tokens = self.target.tokens
        for n in sorted(set(batch.n.tolist())):
            rows = (batch.n == n).nonzero()[:, 0]
            wanted = int(n) if tokens.exact and n <= FEW else int(min(n, PADDED))
            if batch.m <= FEW:
                yield max(wanted, batch.m), (rows, split_heavy(batch[rows], wanted))
            elif n >= FEW * batch.m:
                yield PADDED, (rows, heaviest(batch[rows], PADDED))

    def remember(self, m: int, errors: Tensor, batch: Multisets) -> None:
        if m in self.best:
            errors = torch.cat([self.best[m][0], errors])
            batch = join(self.best[m][1], batch)
        errors, rows = errors.topk(min(KEPT, len(errors)))
        self.best[m] = errors, batch[rows]

    # ---- the outcome

    @torch.no_grad()
    def witness(self, end: float) -> Witness:
        """The worst of the best, evaluated by the network as it is."""
        found: list[Witness] = []
        began = time.perf_counter()
        for _, one in self.top:
            now = time.perf_counter()
            if found and now + (now - began) / len(found) > end + GRACE:
                break
            weights = one.weights()
            f, N = self.compared.values(self.compared.network, one.points, weights)
            counts = tuple(int(w) for w in weights[0])
            found.append(Witness(self.target, one.points[0], counts, tuple(f[0, 0].tolist()), tuple(N[0, 0].tolist())))
        return max(found, key=lambda witness: -1.0 if isnan(witness.error) else witness.error)

"""sup_X ‖f(X) − N(X)‖_∞ from below: the largest error a search over the domain finds.

Random tokens, corners and faces, and degenerate multisets (one token against n − 1 copies, clusters whose shares of the
total are balanced), then gradient ascent on |f − N| over positions and counts. Sampling may refute a certificate, never
give one: `violation` evaluates f at the witness in balls before it says so.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isnan, nextafter
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from sumformer.certificates.attack_inputs import MANY, InputSpace, Multisets, join, proposals, split_heavy
from sumformer.certificates.list_attack import search_lists
from sumformer.certificates.listed import Listed
from sumformer.certificates.weighted_value import weighted_value
from sumformer.certificates.witness import Witness
from sumformer.errors import MissingDependencyError
from sumformer.nn.summary import Summary
from sumformer.targets import Environment, Target, evaluate, reductions
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.torch_evaluation import TorchOperations

Progress = Callable[[str, float], None]  # the kind of input just tried, the worst error so far


class Network(Protocol):
    """What is attacked: ψ(x_i, Σ) with Σ = Σ_j w_j φ(z_j), float `outside`, computed in `inside`."""

    inside: torch.dtype
    outside: torch.dtype

    @property
    def latent_dimension(self) -> int: ...
    def summarise(self, z: Tensor, weights: Tensor | None = None) -> Summary: ...
    def apply(self, x: Any, state: Summary | None = None) -> Any: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...


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
QUICK = 0.1  # seconds in which so many inputs are looked at that more can be, before the next look at the clock
PRECISION = 256  # bits, of the balls
SINGLE = 2**24  # whole numbers up to here are float32 numbers


@dataclass(frozen=True)
class AttackResult:
    """The worst error found and where, NaN where f is no number at any input; `by_kind`: that of every kind.

    `cut_short`: time ran out before all inputs of this effort were tried.
    """

    worst: float
    witness: Witness
    trials: int
    seconds: float
    by_kind: dict[str, float]
    cut_short: bool = False


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
            lists = search_lists(target, network, EFFORTS[effort], seed, seconds, progress)
            seen = lists.witness()
            taken = time.perf_counter() - start
            return AttackResult(seen.error, seen, lists.trials, taken, lists.by_kind, taken > seconds)
        search = _Search(target, network, seed, EFFORTS[effort])
        for batch in search.inputs():
            worst = search.look(batch, start + seconds)
            if progress is not None:
                progress(batch.kind, worst)
            if time.perf_counter() - start > seconds:
                break
        taken = time.perf_counter() - start
        witness = search.witness()
    finally:
        torch.set_num_threads(threads)
    return AttackResult(witness.error, witness, search.trials, taken, search.by_kind, taken > seconds)


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


class _Search:
    """The state of one attack: the best inputs so far, by number of distinct tokens."""

    def __init__(self, target: Target, network: Any, seed: int, effort: Effort) -> None:
        self.listed = not hasattr(network, "summarise")
        if self.listed:
            network = Listed(network)
        self.target, self.effort = target, effort
        self.network: Network = network
        limit = Listed.most_tokens if self.listed else SINGLE if network.inside == torch.float32 else MANY
        most = min(target.tokens.maximum, max(target.tokens.minimum, limit))
        generator = torch.Generator().manual_seed(seed)
        self.space = InputSpace(target.box, target.tokens, network.outside, most, generator)
        self.best: dict[int, tuple[Tensor, Multisets]] = {}
        self.top: list[tuple[float, Multisets]] = []
        self.by_kind: dict[str, float] = {}
        self.trials = 0
        low, high = self.space.bounds
        self.radius = (high - low) / 2
        self.device = next((p.device for p in network.parameters()), torch.device("cpu"))

    def inputs(self) -> Iterator[Multisets]:
        """The fixed proposals, then what ascent makes of the best of them."""
        work = sum(p.numel() for p in self.network.parameters())
        size = max(32, min(self.effort.size, self.effort.size * 2**15 // max(work, 1)))
        yield from proposals(self.space, self.balance, size)
        for _ in range(self.effort.rounds):
            for group in self.groups():
                yield self.climb(group)

    # ---- errors

    def look(self, batch: Multisets, end: float = inf) -> float:
        """Evaluate a batch, or what of it there is time for until `end`, remember its best; the worst error so far."""
        m = int(batch.n.max()) if self.listed else batch.m
        most = max(1, CHUNK // (m * max(1, int(self.network.latent_dimension))))
        found_errors: list[Tensor] = []
        done, step = 0, min(2, most)
        with torch.no_grad():
            while done < len(batch) and (not done or time.perf_counter() < end):
                piece, began = batch[slice(done, done + step)], time.perf_counter()
                found_errors.append(self.errors(piece.points, piece.weights()))
                done += len(piece)
                step = min(4 * step, most) if time.perf_counter() < began + QUICK else step
        batch = batch[slice(0, done)]
        errors = torch.cat(found_errors)
        self.trials += len(batch)
        found, rows = errors.topk(min(KEPT, len(batch)))
        kept = batch[rows]
        self.top = sorted([*self.top, (float(found[0]), kept[:1])], key=lambda pair: -pair[0])[:FEW]
        self.by_kind[batch.kind] = max(self.by_kind.get(batch.kind, 0.0), float(found[0]))
        for m, some in self.padded(kept):
            self.remember(m, found[some[0]], some[1])
        return self.top[0][0]

    def errors(self, points: Tensor, weights: Tensor) -> Tensor:
        """‖f − N‖_∞ at the own token, (batch,); ∞ where N is not finite, −1 where f alone cannot be evaluated."""
        f, N = self.values(self.small(points.shape[1]), points, weights)
        gap = torch.where(f.isfinite().all(1), (f - N).abs().amax(1), -1.0)
        return torch.where(N.isfinite().all(1), gap, inf)

    def values(self, network: Network, points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        outside = points.to(network.outside)
        state = network.summarise(outside.to(self.device), weights.to(self.device, network.inside))
        N = network.apply(outside[:, :1].to(self.device), state)[:, 0].to(points)
        return weighted_value(self.target, points, weights), N

    def small(self, m: int) -> Network:
        """The same network without the zeros that fill up a group of tokens: they are added exactly."""
        if not m < getattr(self.network, "group", 0):
            return self.network
        small: Any = copy.copy(self.network)
        small.group = max(2, m)
        return small  # type: ignore[no-any-return]

    def balance(self, points: Tensor) -> list[Tensor]:
        """ℓ_j = −log|e(x, y_j)| for the bodies e of width 1: every token holds the same share of Σ_j w_j e(x, y_j)."""
        ops = TorchOperations(points.dtype, points.device)
        bodies = dict.fromkeys(r.body for r in reductions(self.target.expression) if r.width == 1)
        plain = [b for b in bodies if not reductions(b)][:2]
        env = Environment(x=points[:, :1], y=points)
        sizes = [evaluate(b, ops, env)[..., 0].abs().nan_to_num(1.0, 1.0) for b in plain]
        return [-size.clamp(1e-30, 1e30).log() for size in sizes] or [torch.zeros_like(points[..., 0])]

    # ---- ascent

    def groups(self) -> list[Multisets]:
        """The best inputs of each size, the size with the worst error first."""
        order = sorted(self.best, key=lambda m: -float(self.best[m][0][0]))
        return [self.best[m][1][: self.effort.starts] for m in order[: self.effort.groups]]

    def padded(self, batch: Multisets) -> Iterator[tuple[int, tuple[Tensor, Multisets]]]:
        """Rows by the number of distinct tokens ascent may move: heavy tokens are split until there are enough."""
        tokens = self.target.tokens
        for n in sorted(set(batch.n.tolist())):
            rows = (batch.n == n).nonzero()[:, 0]
            wanted = int(n) if tokens.exact and n <= FEW else int(min(n, PADDED))
            if batch.m <= FEW:
                yield max(wanted, batch.m), (rows, split_heavy(batch[rows], wanted))

    def remember(self, m: int, errors: Tensor, batch: Multisets) -> None:
        if m in self.best:
            errors = torch.cat([self.best[m][0], errors])
            batch = join(self.best[m][1], batch)
        errors, rows = errors.topk(min(KEPT, len(errors)))
        self.best[m] = errors, batch[rows]

    def climb(self, start: Multisets) -> Multisets:
        """Adam on |f − N| over points (projected to the box) and ℓ, from `start` and from places near it."""
        batch = join(start, self.shaken(start))
        points, logits = batch.points, batch.logits
        best = torch.full((len(batch),), -1.0, dtype=torch.float64)
        best_points, best_logits = points, logits
        moments = [torch.zeros_like(t) for t in (points, points, logits, logits)]
        for step in range(self.effort.steps):
            leaf = Multisets("ascent", points.clone().requires_grad_(), logits.clone().requires_grad_(), batch.n)
            errors = self.errors(leaf.points, leaf.relaxed())
            if not errors.requires_grad:
                break
            gradients = torch.autograd.grad(errors.sum(), (leaf.points, leaf.logits), allow_unused=True)
            better = errors.detach() > best
            best = torch.where(better, errors.detach(), best)
            best_points = torch.where(better[:, None, None], points, best_points)
            best_logits = torch.where(better[:, None], logits, best_logits)
            rate = 0.1 * 0.01 ** (step / self.effort.steps)
            moves = [_adam(g, moments[2 * i : 2 * i + 2], step) for i, g in enumerate(gradients)]
            points = self.space.project(points + rate * self.radius * moves[0])
            logits = (logits + 10 * rate * moves[1]).clamp(-80, 80)
        self.trials += len(batch) * self.effort.steps
        return Multisets("ascent", best_points, best_logits, batch.n)

    def shaken(self, batch: Multisets) -> Multisets:
        generator = self.space.generator
        noise = torch.randn(batch.points.shape, generator=generator, dtype=torch.float64)
        points = self.space.project(batch.points + 0.1 * self.radius * noise)
        tilt = torch.randn(batch.logits.shape, generator=generator, dtype=torch.float64)
        return Multisets(batch.kind, points, batch.logits + tilt, batch.n)

    # ---- the outcome

    @torch.no_grad()
    def witness(self) -> Witness:
        """The worst of the best, evaluated by the network as it is."""
        found = []
        for _, one in self.top:
            weights = one.weights()
            f, N = self.values(self.network, one.points, weights)
            counts = tuple(int(w) for w in weights[0])
            found.append(Witness(self.target, one.points[0], counts, tuple(f[0].tolist()), tuple(N[0].tolist())))
        return max(found, key=lambda witness: -1.0 if isnan(witness.error) else witness.error)


def _adam(gradient: Tensor | None, moments: list[Tensor], step: int) -> Tensor:
    """m̂/√v̂, moments updated in place; numbers that are none count as 0."""
    first, second = moments
    g = torch.zeros_like(first) if gradient is None else gradient.nan_to_num(0.0, 0.0, 0.0)
    g = g / g.flatten(1).norm(dim=1).clamp_min(1e-300).reshape(-1, *[1] * (g.dim() - 1))
    first.mul_(0.7).add_(0.3 * g)
    second.mul_(0.9).add_(0.1 * g**2)
    return (first / (1 - 0.7 ** (step + 1))) / ((second / (1 - 0.9 ** (step + 1))).sqrt() + 1e-12)

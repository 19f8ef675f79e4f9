"""Multisets to attack with: m distinct tokens, the own one first, counted w_1, …, w_m times, Σ_j w_j = n.

w_j = 1 + (n − m)·softmax(ℓ)_j while ℓ is searched over; when a multiset is evaluated, the whole numbers below, and what
is missing goes to the largest. So tokens lie in the box and are representable, n is allowed, and counts are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import torch
from torch import Tensor

from sumformer.targets import Box, Tokens

COUNTS = (1, 2, 3, 10, 10**3, 10**5)
MANY = 10**9
CORNERS = 256  # all of them up to d = 8, then a random selection
NEAR = 8  # powers of ten: how near some queries are to what weighs most
USUAL = 1000  # tokens, of which a network is expected to take as many at once
KINDS = ("queries", "copies", "two corners", "clusters", "balanced", "random", "faces")  # those that tell most first


@dataclass(frozen=True)
class Multisets:
    """A batch: `points` (batch, m, d), `logits` ℓ (batch, m), `n` ≥ m (batch,), all float64; `kind`: its origin."""

    kind: str
    points: Tensor
    logits: Tensor
    n: Tensor

    def __len__(self) -> int:
        return self.points.shape[0]

    @property
    def m(self) -> int:
        return self.points.shape[1]

    def relaxed(self) -> Tensor:
        """1 + (n − m)·softmax(ℓ): real, differentiable in ℓ."""
        return 1 + (self.n - self.m)[:, None] * self.logits.softmax(1)

    def weights(self) -> Tensor:
        """Whole numbers ≥ 1 with sum n, as close to `relaxed` as rounding down allows."""
        whole = self.relaxed().detach().floor()
        missing = self.n - whole.sum(1)
        return whole.scatter_add(1, whole.argmax(1, keepdim=True), missing[:, None])

    def __getitem__(self, rows: Tensor | slice) -> Multisets:
        return Multisets(self.kind, self.points[rows], self.logits[rows], self.n[rows])

    def own(self, which: Tensor) -> Multisets:
        """The same multisets, token which (batch,) in front."""
        places = own_first(self.m, which)
        points = self.points.gather(1, places[..., None].expand(-1, -1, self.points.shape[2]))
        return replace(self, points=points, logits=self.logits.gather(1, places))


def own_first(m: int, which: Tensor) -> Tensor:
    """(batch, m): 0, …, m − 1 with 0 and which (batch,) exchanged."""
    places = torch.arange(m).repeat(len(which), 1)
    places[torch.arange(len(which)), which] = 0
    places[:, 0] = which
    return places


@dataclass(frozen=True)
class InputSpace:
    """The box's tokens representable in `dtype`, the allowed n (at most `most`), and the random generator."""

    box: Box
    tokens: Tokens
    dtype: torch.dtype
    most: int
    generator: torch.Generator

    def random(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64)

    @cached_property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """The least and the largest representable point of the box."""
        low = [0.0 - _below(-a, self.dtype) for a in self.box.lower]
        high = [_below(b, self.dtype) for b in self.box.upper]
        return torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)

    def project(self, points: Tensor) -> Tensor:
        """The nearest representable point of the box, up to one rounding, as float64."""
        low, high = self.bounds
        return points.to(self.dtype).to(torch.float64).clamp(low, high)

    def uniform(self, *shape: int) -> Tensor:
        low, high = self.bounds
        return self.project(low + (high - low) * self.random(*shape, self.box.d))

    def faces(self, *shape: int) -> Tensor:
        """Each coordinate at an end of its interval with probability ½: corners, edges, faces and the interior."""
        low, high = self.bounds
        ends = torch.where(self.random(*shape, self.box.d) < 0.5, low, high)
        return torch.where(self.random(*shape, self.box.d) < 0.5, ends, self.uniform(*shape))

    def corners(self) -> Tensor:
        """(count, d)."""
        low, high = self.bounds
        if 2**self.box.d <= CORNERS:
            choice = torch.tensor(list(product((0.0, 1.0), repeat=self.box.d)), dtype=torch.float64)
        else:
            choice = (self.random(CORNERS, self.box.d) < 0.5).to(torch.float64)
        return torch.where(choice == 0, low, high)

    @cached_property
    def counts(self) -> Tensor:
        """The n that are tried, ascending."""
        allowed = {n for n in COUNTS if self.tokens.minimum <= n <= self.most} | {self.tokens.minimum, self.most}
        return torch.tensor(sorted(allowed), dtype=torch.float64)

    def many(self, count: int, m: int) -> Tensor:
        """n ≥ m: the largest in half of the rows."""
        some = self.counts[self.counts >= m]
        any_of_them = some[(self.random(count) * len(some)).long()]
        return torch.where(self.random(count) < 0.5, some[-1], any_of_them)


Balance = Callable[[Tensor], list[Tensor]]  # points (batch, m, d) → logits that give every token an equal share


def preferred(batch: Multisets) -> tuple[int, bool, bool, int]:
    """What is looked at first: of each kind many tokens, but no more than usual; one token is its own answer: last."""
    return KINDS.index(batch.kind), batch.m == 1, batch.m > 2 * USUAL, -batch.m


def proposals(space: InputSpace, balance: Balance, size: int, queries: int = 0) -> Iterator[Multisets]:
    """The fixed list of inputs, about `size` of each kind; with `queries`, sequences of so many tokens to ask for."""
    yield from _plain(space, "random", space.uniform, size)
    yield from _plain(space, "faces", space.faces, size)
    yield from _against_copies(space, size)
    for m in (2, 3, 4):
        yield from _clusters(space, balance, m, size)
    yield from _corner_clusters(space, balance, size)
    if queries:
        yield from _queries(space, queries, size)


def _plain(space: InputSpace, kind: str, draw: Callable[..., Tensor], size: int) -> Iterator[Multisets]:
    """n distinct tokens, each once."""
    for n in (int(k) for k in space.counts if k <= 10**5):
        count = max(1, min(size, 10**5 // n))
        yield Multisets(
            kind,
            draw(count, n),
            torch.zeros(count, n, dtype=torch.float64),
            torch.full((count,), n, dtype=torch.float64),
        )


def _against_copies(space: InputSpace, size: int) -> Iterator[Multisets]:
    """The own token against n − 1 copies of one other: where the error of a mean is the error of its kernel."""
    if space.most < 2:
        return
    for draw in (space.uniform, space.faces):
        points, n = draw(4 * size, 2), space.many(4 * size, 2)
        yield Multisets("copies", points, _own_once(torch.zeros(4 * size, 2, dtype=torch.float64)), n)


def _clusters(space: InputSpace, balance: Balance, m: int, size: int) -> Iterator[Multisets]:
    """m tokens, some of them at one place, with counts drawn over all magnitudes or balanced."""
    if space.most < m:
        return
    points = space.faces(size, m)
    if m > 2:  # a near token: all others at one point, or next to the own one
        step = 10 ** (-3 * space.random(size, 1)) * (space.uniform(size) - points[:, 0])
        points[:, 1] = torch.where(space.random(size, 1) < 0.5, space.project(points[:, 0] + step), points[:, 1])
    n = space.many(size, m)
    spread = torch.log(n)[:, None] * (space.random(size, m) - 0.5) * 2
    yield Multisets("clusters", points, spread, n)
    for logits in balance(points):
        yield Multisets("balanced", points, logits, n)
        yield Multisets("balanced", points, _own_once(logits), n)


def _corner_clusters(space: InputSpace, balance: Balance, size: int) -> Iterator[Multisets]:
    """Two clusters on every pair of corners with every split; the own token in one of them, or anywhere."""
    if space.most < 3:
        return
    corners = space.corners()
    a, b = torch.triu_indices(len(corners), len(corners), 1)
    pairs = torch.stack([corners[a], corners[b]], dim=1)[torch.randperm(len(a), generator=space.generator)[:size]]
    splits = torch.linspace(-1, 1, 9, dtype=torch.float64)
    for own in (pairs[:, :1], pairs[:, 1:]):
        points = torch.cat([own, pairs], dim=1).repeat_interleave(len(splits), 0)
        n = space.many(len(points), 3)
        half = torch.log(n) * splits.repeat(len(pairs)) / 2
        yield Multisets("two corners", points, _own_once(torch.stack([half, half, -half], dim=1)), n)
    wide = pairs.repeat_interleave(max(1, size // (2 * len(pairs))), 0)
    points = torch.cat([space.faces(len(wide), 1), wide], dim=1)
    for logits in balance(points):
        yield Multisets("two corners", points, _own_once(logits), space.many(len(wide), 3))


def _queries(space: InputSpace, queries: int, size: int) -> Iterator[Multisets]:
    """Many tokens counted once, anywhere or next to a heavy one, and 1, 2 or 4 heavy ones that count for all others."""
    for heavy in (1, 2, 4):
        m = min(queries + heavy, space.most)
        if m <= heavy:
            return
        places, shape = space.faces(size, heavy), (size, m - heavy)
        light = torch.where(space.random(*shape, 1) < 0.5, space.uniform(*shape), space.faces(*shape))
        of = (space.random(*shape, 1) * heavy).long().expand(-1, -1, space.box.d)
        near = places.gather(1, of)
        step = 10 ** (-NEAR * space.random(*shape, 1)) * (light - near)
        light = torch.where(space.random(*shape, 1) < 0.5, space.project(near + step), light)
        n = space.many(size, m)
        spread = torch.log(n)[:, None] * (space.random(size, heavy) - 0.5)
        once = torch.full(shape, -160.0, dtype=torch.float64)
        yield Multisets("queries", torch.cat([light, places], 1), torch.cat([once, spread], 1), n)


def _own_once(logits: Tensor) -> Tensor:
    """The own token counted as little as possible, the others as they are."""
    return torch.cat([torch.full_like(logits[:, :1], -80.0), logits[:, 1:]], dim=1)


def _below(value: Fraction, dtype: torch.dtype) -> float:
    """The largest number of `dtype` that is ≤ value."""
    nearest = torch.tensor(float(value), dtype=dtype)
    if Fraction(nearest.item()) > value:
        nearest = torch.nextafter(nearest, torch.tensor(-torch.inf, dtype=dtype))
    return float(nearest.item())


def join(*batches: Multisets) -> Multisets:
    """One after another, as one batch."""
    parts = ([b.points for b in batches], [b.logits for b in batches], [b.n for b in batches])
    return Multisets(batches[0].kind, *(torch.cat(part) for part in parts))


def split_heavy(batch: Multisets, wanted: int) -> Multisets:
    """The same multisets over at least `wanted` ≤ n listed tokens: the one that counts most per place gets one more."""
    points, weights = batch.points, batch.weights()
    owner = torch.arange(batch.m).expand(len(batch), -1)
    places = torch.ones_like(weights)
    for _ in range(wanted - batch.m):
        heavy = (weights / places).argmax(1, keepdim=True)
        places = places.scatter_add(1, heavy, torch.ones_like(heavy, dtype=torch.float64))
        owner = torch.cat([owner, heavy], dim=1)
    share = (weights / places).gather(1, owner)
    listed = points.gather(1, owner[..., None].expand(-1, -1, points.shape[2]))
    return Multisets(batch.kind, listed, (share - 1).clamp_min(1e-30).log(), batch.n)


def heaviest(batch: Multisets, m: int) -> Multisets:
    """The own token and the m − 1 others that count most, which count for all that are left out."""
    weights = batch.weights()
    rank = weights.clone()
    rank[:, 0] = torch.inf
    chosen = rank.topk(m).indices
    points = batch.points.gather(1, chosen[..., None].expand(-1, -1, batch.points.shape[2]))
    return Multisets(batch.kind, points, (weights.gather(1, chosen) - 1).clamp_min(1e-30).log(), batch.n)

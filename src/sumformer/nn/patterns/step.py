"""One step of a pattern: A_k = ∪ {j related to k} over its relations, and A_k = [n] for the first `rows` tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.patterns.drawn import Drawn
from sumformer.nn.patterns.relations import SELF, Band, BlockEnds, First, Length, Relation, SameBlock, Stride

_ORDER: tuple[type[Relation], ...] = (Band, SameBlock, First, BlockEnds, Stride, Drawn)


@dataclass(frozen=True)
class Step:
    """Relations in the order in which they are computed: each leaves out what an earlier one has."""

    relations: tuple[Relation, ...]
    rows: int = 0

    def __post_init__(self) -> None:
        strange = [r for r in self.relations if type(r) not in _ORDER]
        if strange:
            raise InputError(f"Step: expected relations of sumformer.nn.patterns, got {strange}")
        # Exclusion asks an earlier relation what it contains, which is cheap for all but the drawn ones.
        if sum(isinstance(r, Drawn) for r in self.relations) > 1:
            raise InputError("Step: expected at most one Drawn")
        object.__setattr__(self, "relations", _simplified(self.relations))

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        """j ∈ A_k, for 0 ≤ j < n; k and j broadcast, except that drawn tokens need k (…, 1) and j (…, m)."""
        inside = (k < self.rows) & (j >= 0)
        for relation in self.relations:
            inside = inside | relation.contains(k, j, n)
        return inside

    def matrix(self, n: int, is_causal: bool = False) -> Tensor:
        """(n, n) boolean, [k, j] = j ∈ A_k: the definition, with all n² answers in memory.

        In causal order row k is that of the k + 1 tokens up to k, which is A_k ∩ {j ≤ k} unless tokens are drawn.
        """
        tokens = torch.arange(n)
        k, j = tokens.unsqueeze(-1), tokens.unsqueeze(0)
        return self.contains(k, j, k + 1).tril() if is_causal else self.contains(k, j, n)

    def earlier(self, first: int, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Whom the tokens k = first … first + n − 1 attend to in causal order: lists (n, ·), and which entries count.

        Those that count are A_k, each j once; all lists are as long as the last token's.
        """
        last, cut = first + n - 1, self.within(first + n)
        k = torch.arange(first, first + n, device=device).unsqueeze(-1)
        lists = [torch.arange(cut.rows, device=device).expand(n, -1)] if first < cut.rows else []
        count = [(k < cut.rows) & (j <= k) for j in lists]
        for i, relation in enumerate(cut.relations):
            j = relation.earlier(k, last).expand(n, -1)
            counts = (j >= 0) & (j <= k) & (k >= cut.rows)
            for other in cut.relations[:i]:
                counts = counts & ~other.contains(k, j, k + 1)
            lists.append(j)
            count.append(counts)
        return torch.cat(lists, -1), torch.cat(count, -1)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        """May a token k ≥ t, in causal order, attend to j < t?"""
        found = (j < self.rows) & (t < self.rows)
        for relation in self.relations:
            found = found | relation.lasting(j, t)
        return found

    def within(self, n: int) -> Step:
        """The same relation of n ≥ 1 tokens, by numbers that are at most n: no plan is larger than its tokens need."""
        return Step(tuple(_cut(relation, n) for relation in self.relations), min(self.rows, n))

    def __or__(self, other: Step) -> Step:
        return Step((*self.relations, *other.relations), max(self.rows, other.rows))


def _cut(relation: Any, n: int) -> Relation:
    sizes = [field.name for field in fields(relation) if field.name != "seed"]
    found: Relation = replace(relation, **{name: min(getattr(relation, name), n) for name in sizes})
    return found


def union(steps: tuple[Step, ...]) -> Step:
    """A_k = ∪_l A_k^l."""
    whole = steps[0]
    for step in steps[1:]:
        whole = whole | step
    return whole


def _simplified(relations: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Equal ones once, one band instead of several, in the fixed order."""
    found = list(dict.fromkeys(relations))
    bands = [r for r in found if isinstance(r, Band)]
    if bands:
        widest = max(bands, key=lambda band: band.w)
        found = [widest, *(r for r in found if not isinstance(r, Band))]
        if widest == SELF and any(isinstance(r, SameBlock | Stride) for r in found):
            found.remove(SELF)
    return tuple(sorted(found, key=lambda r: _ORDER.index(type(r))))

"""The smallest plan whose bound is ≤ ε, whatever its kernels are approximated by: features, or a mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from sumformer.errors import DomainError, RefusedError
from sumformer.targets import reductions
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_overflow
from sumformer.theorems.alberti_2023.decomposition import Decomposition, decompose
from sumformer.theorems.alberti_2023.expansion import Grouping
from sumformer.theorems.alberti_2023.interpolation import Studies
from sumformer.theorems.alberti_2023.plan_search import P, PlanSearch
from sumformer.theorems.alberti_2023.split import Split


@dataclass(frozen=True)
class Planned(Generic[P]):
    """A plan whose bound is at most ε; with `own_token`, for queries that are among the sources."""

    plan: P
    split: Split
    grouping: Grouping
    own_token: bool = False

    @property
    def exact(self) -> bool:
        return self.plan.decomposition.polynomial


def planned(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    planner: Callable[..., P],
    *,
    own_token: bool = False,
    studies: Studies | None = None,
) -> Planned[P]:
    """The smallest network found whose bound is ≤ ε, or a refusal with what is reachable.

    `planner` chooses what kernels are approximated by. With `own_token` the proof may use that x itself is among the
    tokens summed (`own_token.py`). `studies` keeps what is found about kernels.
    """
    refuse_overflow(target.box, arithmetic)
    studies = studies or Studies(target.box)
    results: list[Planned[P]] = []
    refusals: list[RefusedError | DomainError] = []
    seen: list[Decomposition] = []
    for grouping in ("split", "joint"):
        try:
            decomposition = decompose(target.countless, target.box, grouping)
            if any(_same(decomposition, other) for other in seen):
                continue
            seen.append(decomposition)
            search = PlanSearch(target, epsilon, arithmetic, decomposition, studies, own_token, planner)
            results.append(Planned(*search.run(), grouping, own_token))
        except (RefusedError, DomainError) as error:
            refusals.append(error)
    if results:
        return min(results, key=lambda r: r.plan.latent_dimension)
    raise _nearest(refusals)


def _nearest(refusals: list[RefusedError | DomainError]) -> RefusedError | DomainError:
    """The refusal that names the least ε, else the last."""
    named = [e for e in refusals if isinstance(e, RefusedError) and e.reachable is not None]
    return min(named, key=lambda e: e.reachable or 0.0) if named else refusals[-1]


def _same(a: Decomposition, b: Decomposition) -> bool:
    return [s.components for s in a.sums] == [s.components for s in b.sums]


def planned_or_own(target: Target, epsilon: float, arithmetic: Arithmetic, planner: Callable[..., P]) -> Planned[P]:
    """For queries anywhere in the box; where that is refused, for queries among the sources.

    Those of a summary that is merged may be any.
    """
    studies = Studies(target.box)
    try:
        return planned(target, epsilon, arithmetic, planner, studies=studies)
    except (RefusedError, DomainError) as refusal:
        sums = any(r.kind in ("sum", "mean") for r in reductions(target.expression))
        if target.positioned or arithmetic.merges or not sums:
            raise
        try:
            return planned(target, epsilon, arithmetic, planner, own_token=True, studies=studies)
        except DomainError:
            raise refusal from None
        except RefusedError as own:
            raise _nearest([refusal, own]) from None

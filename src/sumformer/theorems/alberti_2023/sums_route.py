"""A 4.1 for targets made of sums: decompose, interpolate what is mixed, cut as far as ε allows, count everything.

f(X)_i = h(x_i, Σ_j k_1(x_i, x_j), …) with analytic k; polynomials written with sums are the case without interpolation
(route *exact*: the error is rounding only). d' and the bound do not depend on n for means and ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sumformer.algebra.interval import Interval
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Reduce, reductions
from sumformer.targets.domain import Tokens
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_overflow
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition, decompose
from sumformer.theorems.alberti_2023.error_bound import ErrorBound
from sumformer.theorems.alberti_2023.expansion import Grouping
from sumformer.theorems.alberti_2023.floors import floors_of, refuse_lost_precision, scales_of
from sumformer.theorems.alberti_2023.guesses import advice_for, at_a_guess, useful
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, Studies
from sumformer.theorems.alberti_2023.kernel_errors import Switches
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan
from sumformer.theorems.alberti_2023.plan import Plan, make_plan
from sumformer.theorems.alberti_2023.ranges import reduction_ranges
from sumformer.theorems.alberti_2023.roundings import UNBOUNDED

P = TypeVar("P", bound=Plan | MeshPlan)

ACCEPT = 0.9  # of ε: leaves room for a checker whose enclosures are a little wider
MARGIN = 1.05 / ACCEPT  # times a bound that was proved: an ε that is met
TRIALS = 10


@dataclass(frozen=True)
class Split:
    """The bound by origin: interpolation remainder, dropped coefficients, rounding."""

    remainder: float
    dropped: float
    rounding: float

    @property
    def total(self) -> float:
        return self.remainder + self.dropped + self.rounding


@dataclass(frozen=True)
class SumsResult(Generic[P]):
    """A plan whose bound is at most ε; with `own_token`, for queries that are among the sources."""

    plan: P
    grouping: Grouping
    split: Split
    own_token: bool = False

    @property
    def exact(self) -> bool:
        return self.plan.decomposition.polynomial


def sums_route(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    *,
    own_token: bool = False,
    studies: Studies | None = None,
) -> SumsResult[Plan]:
    """As `planned`, with Chebyshev features."""
    return planned(target, epsilon, arithmetic, make_plan, own_token=own_token, studies=studies)


def planned(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    planner: Callable[..., P],
    *,
    own_token: bool = False,
    studies: Studies | None = None,
) -> SumsResult[P]:
    """The smallest network found whose bound is ≤ ε, or a refusal with what is reachable.

    `planner` chooses what kernels are approximated by. With `own_token` the proof may use that x itself is among the
    tokens summed (`own_token.py`). `studies` keeps what is found about kernels.
    """
    refuse_overflow(target.box, arithmetic)
    studies = studies or Studies(target.box)
    results: list[SumsResult[P]] = []
    refusals: list[RefusedError | DomainError] = []
    seen: list[Decomposition] = []
    for grouping in ("split", "joint"):
        try:
            decomposition = decompose(target.countless, target.box, grouping)
            if any(_same(decomposition, other) for other in seen):
                continue
            seen.append(decomposition)
            results.append(_search(target, epsilon, arithmetic, decomposition, grouping, studies, own_token, planner))
        except (RefusedError, DomainError) as error:
            refusals.append(error)
    if results:
        return min(results, key=lambda r: r.plan.latent_dimension)
    reachable = [e.reachable for e in refusals if isinstance(e, RefusedError) and e.reachable is not None]
    if not reachable:
        raise refusals[-1]
    raise min((e for e in refusals if isinstance(e, RefusedError) and e.reachable), key=lambda e: e.reachable or 0.0)


def _same(a: Decomposition, b: Decomposition) -> bool:
    return [s.components for s in a.sums] == [s.components for s in b.sums]


def sums_or_own(target: Target, epsilon: float, arithmetic: Arithmetic) -> SumsResult[Plan]:
    """As `planned_or_own`, with Chebyshev features."""
    return planned_or_own(target, epsilon, arithmetic, make_plan)


def planned_or_own(target: Target, epsilon: float, arithmetic: Arithmetic, planner: Callable[..., P]) -> SumsResult[P]:
    """For queries anywhere in the box; where that is refused, for queries among the sources."""
    studies = Studies(target.box)
    try:
        return planned(target, epsilon, arithmetic, planner, studies=studies)
    except (RefusedError, DomainError) as refusal:
        if target.positioned or not any(r.kind in ("sum", "mean") for r in reductions(target.expression)):
            raise
        try:
            return planned(target, epsilon, arithmetic, planner, own_token=True, studies=studies)
        except DomainError:
            raise refusal from None
        except RefusedError as own:
            known = isinstance(refusal, RefusedError) and refusal.reachable is not None
            raise (refusal if known and own.reachable is None else own) from None


def _search(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    decomposition: Decomposition,
    grouping: Grouping,
    studies: Studies,
    own_token: bool,
    planner: Callable[..., P],
) -> SumsResult[P]:
    """Tolerances in turn: the bound is nearly proportional to the tolerance, so a few trials suffice."""
    cells = Cells(target.box)
    pieces = token_pieces(decomposition, cells, target.tokens, own_token)
    kernels = {k: studies.of(k) for k in decomposition.kernels}
    floors = floors_of(decomposition, kernels, cells, target.tokens, own_token)
    advice = advice_for(target, arithmetic, own_token)
    refuse_lost_precision(floors, kernels, epsilon, arithmetic, target, advice)
    scales = scales_of(floors, kernels, own_token)
    finest = min([scales[k] / max(abs(end) for end in s.range) for k, s in kernels.items() if any(s.range)] or [1.0])
    tolerance, nearest = epsilon, Split(float("inf"), 0.0, 0.0)
    best: SumsResult[P] | None = None
    for _ in range(TRIALS):
        try:
            plan = planner(decomposition, kernels, scales, tolerance, arithmetic.dtype, floors if own_token else None)
        except DegreeBudgetError as refusal:
            if best is not None:
                break
            guess = useful(2 * epsilon * refusal.excess, target)
            reasons = [*refusal.reasons, *at_a_guess(guess), "a smaller box or a smoother kernel would help", *advice]
            raise RefusedError(str(refusal).splitlines()[0], reasons, guess) from None
        try:
            split = measure(plan, arithmetic, cells, pieces)
        except DomainError:  # the exact values stay in the domain; these approximations may not: refine
            if not plan.kernels:
                raise
            tolerance *= 0.03
            if tolerance * finest < arithmetic.u:
                break
            continue
        nearest = min(nearest, split, key=lambda s: s.total)
        room, approximation = ACCEPT * epsilon - split.rounding, split.remainder + split.dropped
        if split.total <= ACCEPT * epsilon:
            if best is None or plan.latent_dimension < best.plan.latent_dimension:
                best = SumsResult(plan, grouping, split, own_token)
            if not plan.kernels or approximation > 0.5 * room:
                break
            tolerance *= min(0.8 * room / max(approximation, 1e-300), 16.0)
        elif best is not None:
            break
        elif room <= 0 or not plan.kernels:
            least = useful(max(2.5 * nearest.rounding, MARGIN * nearest.total), target)
            unknown = split.rounding == float("inf")
            alone = (
                f"what rounding does to {UNBOUNDED} is not bounded"
                if unknown
                else f"rounding alone is {split.rounding:.2g}"
            )
            raise RefusedError(
                f"ε = {epsilon:g} is not reachable in {arithmetic.name} arithmetic: {alone}",
                [*at_a_guess(least), *advice],
                reachable=least,
            )
        else:
            shrink = 0.8 * room / approximation if approximation < float("inf") else 0.01
            tolerance *= min(max(shrink, 1e-4), 0.7)
            if tolerance * finest < arithmetic.u:  # no coefficient is known as well as that
                break
    if best is None:
        met = useful(MARGIN * nearest.total, target)
        reasons = ["no finite bound was proved"] if nearest.total == float("inf") else at_a_guess(met)
        raise RefusedError(f"ε = {epsilon:g} was not reached by the sums route", [*reasons, *advice], met)
    return best


@dataclass(frozen=True)
class TokenPiece:
    """Some of the token counts, and where the reductions lie for them."""

    tokens: Tokens
    ranges: Mapping[Reduce, Interval]
    own_token: bool = False


def token_pieces(
    decomposition: Decomposition, cells: Cells, tokens: Tokens, own_token: bool = False
) -> list[TokenPiece]:
    """The token counts in pieces [m, 2m], where the target has true sums: a sum's size and its error grow together."""
    expression = decomposition.expression
    counts = [tokens]
    if any(s.reduction.kind in ("sum", "sum_others") for s in decomposition.sums):
        counts, low = [], tokens.minimum
        while low <= tokens.maximum:
            high = min(2 * low, tokens.maximum)
            counts.append(Tokens(low, high))
            low = high + 1
    return [TokenPiece(piece, reduction_ranges(expression, cells, piece, own_token), own_token) for piece in counts]


def measure(plan: Plan | MeshPlan, arithmetic: Arithmetic, cells: Cells, pieces: Sequence[TokenPiece]) -> Split:
    """The bound and its parts; the parts add up to the bound."""

    def bound(switches: Switches) -> float:
        return max(
            ErrorBound(plan, arithmetic, p.tokens, cells, switches, p.ranges, p.own_token).total() for p in pieces
        )

    total = bound(Switches())
    if not plan.kernels:
        return Split(0.0, 0.0, total)
    remainder = bound(Switches(dropped=False, rounding=False))
    approximation = max(bound(Switches(rounding=False)), remainder)
    total = max(total, approximation)
    return Split(remainder, approximation - remainder, total - approximation)

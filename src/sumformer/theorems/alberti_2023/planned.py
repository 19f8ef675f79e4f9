"""The smallest plan whose bound is ≤ ε, whatever its kernels are approximated by: features, or a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sumformer.errors import DomainError, RefusedError
from sumformer.targets import reductions
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_overflow
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition, decompose
from sumformer.theorems.alberti_2023.expansion import Grouping
from sumformer.theorems.alberti_2023.floors import floors_of, refuse_lost_precision, scales_of
from sumformer.theorems.alberti_2023.guesses import advice_for, at_a_guess, reached, useful
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, Studies
from sumformer.theorems.alberti_2023.kernel_errors import Switches
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan
from sumformer.theorems.alberti_2023.plan import Plan
from sumformer.theorems.alberti_2023.roundings import UNBOUNDED
from sumformer.theorems.alberti_2023.sketch import sketched
from sumformer.theorems.alberti_2023.split import Split, bound, measure, token_pieces

P = TypeVar("P", bound=Plan | MeshPlan)

ACCEPT = 0.9  # of ε: leaves room for a checker whose enclosures are a little wider
MARGIN = 1.05 / ACCEPT  # times a bound that was proved: an ε that is met
AIM = 0.8  # of the room that is left, for the next tolerance
TRIALS = 10
SMOOTHER = "a smaller box or a smoother kernel would help"


@dataclass(frozen=True)
class Planned(Generic[P]):
    """A plan whose bound is at most ε; with `own_token`, for queries that are among the sources."""

    plan: P
    grouping: Grouping
    split: Split
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
            results.append(_search(target, epsilon, arithmetic, decomposition, grouping, studies, own_token, planner))
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
            raise _nearest([refusal, own]) from None


def _search(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    decomposition: Decomposition,
    grouping: Grouping,
    studies: Studies,
    own_token: bool,
    planner: Callable[..., P],
) -> Planned[P]:
    """Tolerances in turn: the bound is nearly proportional to the tolerance, so a few trials suffice.

    Where one is too fine for the budget, the finest that is not follows; its bound is then the least ε that can be met.
    """
    cells = Cells(target.box)
    pieces = token_pieces(decomposition, cells, target.tokens, own_token)
    kernels = {k: studies.of(k) for k in decomposition.kernels}
    floors = floors_of(decomposition, kernels, cells, target.tokens, own_token)
    advice = advice_for(target, arithmetic, own_token)
    refuse_lost_precision(floors, kernels, epsilon, arithmetic, target, advice)
    scales = scales_of(floors, kernels, own_token)
    finest = min([scales[k] / max(abs(end) for end in s.range) for k, s in kernels.items() if any(s.range)] or [1.0])

    def planned_to(tolerance: float) -> P:
        return planner(decomposition, kernels, scales, tolerance, arithmetic.dtype, floors if own_token else None)

    def sketch_at(tolerance: float) -> float:
        plan = sketched(decomposition, kernels, scales, tolerance, floors if own_token else None)
        try:
            return bound(plan, arithmetic, cells, pieces, Switches(rounding=False))
        except DomainError:
            return float("inf")

    tolerance, nearest = epsilon, Split(float("inf"), 0.0, 0.0)
    best: Planned[P] | None = None
    beyond: DegreeBudgetError | None = None  # the budget, as met first
    for _ in range(TRIALS):
        try:
            plan = planned_to(tolerance)
        except DegreeBudgetError as refusal:
            if best is not None:
                break
            beyond, tolerance = beyond or refusal, tolerance * refusal.excess * (1 + 1e-9)
            if refusal.dear:
                approximation = sketch_at(tolerance)
                if approximation > ACCEPT * epsilon:
                    needs = _needs(planned_to, tolerance * ACCEPT * epsilon / approximation, beyond)
                    guess = useful(MARGIN / AIM * approximation, target)
                    raise RefusedError(_first(beyond), [*needs, *at_a_guess(guess), SMOOTHER, *advice], guess) from None
            if tolerance == float("inf"):
                raise _beyond_budget(beyond, _tightest(beyond), None, target, advice) from None
            continue
        except RefusedError as refusal:  # another budget, which no tolerance is known to meet
            if best is not None:
                break
            if beyond is not None:
                raise _beyond_budget(beyond, _tightest(beyond), None, target, advice) from None
            if nearest.total == float("inf"):
                raise
            guess = useful(MARGIN / AIM * nearest.total, target)
            raise RefusedError(_first(refusal), [*_tightest(refusal), *at_a_guess(guess)], guess) from None
        try:
            split = measure(plan, arithmetic, cells, pieces)
        except DomainError:  # the exact values stay in the domain; these approximations may not: refine
            if beyond is not None:
                raise _beyond_budget(beyond, _tightest(beyond), None, target, advice) from None
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
                best = Planned(plan, grouping, split, own_token)
            if not plan.kernels or approximation > 0.5 * room:
                break
            tolerance *= min(AIM * room / max(approximation, 1e-300), 16.0)
        elif best is not None:
            break
        elif beyond is not None:
            asked = tolerance * room / max(approximation, 1e-300)
            raise _beyond_budget(beyond, _needs(planned_to, asked, beyond), split, target, advice)
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
            shrink = AIM * room / approximation if approximation < float("inf") else 0.01
            tolerance *= min(max(shrink, 1e-4), 0.7)
            if tolerance * finest < arithmetic.u:  # no coefficient is known as well as that
                break
    if best is None:
        met = useful(MARGIN / AIM * nearest.total, target)
        reasons = ["no finite bound was proved"] if nearest.total == float("inf") else at_a_guess(met)
        raise RefusedError(f"ε = {epsilon:g} was not reached by the tolerances tried", [*reasons, *advice], met)
    return best


def _needs(planned_to: Callable[[float], object], tolerance: float, beyond: DegreeBudgetError) -> list[str]:
    """What the tolerance that ε asks for would need; where there is none, what the tightest tried would."""
    if tolerance > 0:
        try:
            planned_to(tolerance)
        except DegreeBudgetError as refusal:
            return list(refusal.reasons)
        except (RefusedError, DomainError):
            pass
    return _tightest(beyond)


def _tightest(refusal: RefusedError) -> list[str]:
    return [f"{reason} (at the tightest tolerance tried)" for reason in refusal.reasons]


def _beyond_budget(
    beyond: DegreeBudgetError, needs: Sequence[str], split: Split | None, target: Target, advice: list[str]
) -> RefusedError:
    """What the asked ε needs, and the ε of the finest plan within the budget, where its bound is known."""
    least = None if split is None else useful(MARGIN * split.total, target)
    return reached(_first(beyond), needs, least, [SMOOTHER, *advice])


def _first(refusal: RefusedError) -> str:
    return str(refusal).splitlines()[0]

"""Tolerances of kernels in turn, until the bound of a plan is ≤ ε with little room: it is nearly proportional to the
tolerance, so a few trials suffice.

Where one is too fine for the budget, the finest that is not follows; its bound is then the least ε that can be met.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

from sumformer.errors import DomainError, RefusedError
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition
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


class PlanSearch(Generic[P]):
    """Of one decomposition of a target; `planner` chooses what kernels are approximated by."""

    def __init__(
        self,
        target: Target,
        epsilon: float,
        arithmetic: Arithmetic,
        decomposition: Decomposition,
        studies: Studies,
        own_token: bool,
        planner: Callable[..., P],
    ) -> None:
        self.target, self.epsilon, self.arithmetic, self.decomposition = target, epsilon, arithmetic, decomposition
        self.planner, self.cells = planner, Cells(target.box)
        self.pieces = token_pieces(decomposition, self.cells, target.tokens, own_token)
        self.kernels = {k: studies.of(k) for k in decomposition.kernels}
        floors = floors_of(decomposition, self.kernels, self.cells, target.tokens, own_token)
        self.advice = advice_for(target, arithmetic, own_token)
        refuse_lost_precision(floors, self.kernels, epsilon, arithmetic, target, self.advice)
        self.scales, self.floors = scales_of(floors, self.kernels, own_token), floors if own_token else None
        sizes = {k: max(abs(end) for end in study.range) for k, study in self.kernels.items()}
        self.finest = min([self.scales[k] / size for k, size in sizes.items() if size] or [1.0])
        self.best: tuple[P, Split] | None = None
        self.nearest = Split(inf, 0.0, 0.0)  # of all bounds
        self.beyond: DegreeBudgetError | None = None  # the budget, as met first

    def run(self) -> tuple[P, Split]:
        """The smallest plan found, or a refusal with what is reachable."""
        tolerance: float | None = self.epsilon
        for _ in range(TRIALS):
            if tolerance is None:
                break
            tolerance = self._trial(tolerance)
        if self.best is not None:
            return self.best
        met = useful(MARGIN / AIM * self.nearest.total, self.target)
        reasons = ["no finite bound was proved"] if self.nearest.total == inf else at_a_guess(met)
        raise RefusedError(
            f"ε = {self.epsilon:g} was not reached by the tolerances tried", [*reasons, *self.advice], met
        )

    def _trial(self, tolerance: float) -> float | None:
        """The next tolerance, None where there is none to try."""
        try:
            plan = self._planned(tolerance)
        except DegreeBudgetError as refusal:
            return None if self.best is not None else self._within_budget(tolerance, refusal)
        except RefusedError as refusal:  # another budget, which no tolerance is known to meet
            if self.best is not None:
                return None
            raise self._other_budget(refusal) from None
        try:
            split = measure(plan, self.arithmetic, self.cells, self.pieces)
        except DomainError:  # the exact values stay in the domain; these approximations may not
            if self.beyond is not None:
                raise self._beyond_budget(self.beyond, _tightest(self.beyond)) from None
            if not plan.kernels:
                raise
            return self._if_known_so_well(0.03 * tolerance)
        self.nearest = min(self.nearest, split, key=lambda s: s.total)
        if split.total <= ACCEPT * self.epsilon:
            return self._met(plan, split, tolerance)
        return None if self.best is not None else self._not_met(plan, split, tolerance)

    def _planned(self, tolerance: float) -> P:
        arithmetic = self.arithmetic.dtype
        return self.planner(self.decomposition, self.kernels, self.scales, tolerance, arithmetic, self.floors)

    def _met(self, plan: P, split: Split, tolerance: float) -> float | None:
        """A coarser one, where there is much room."""
        if self.best is None or plan.latent_dimension < self.best[0].latent_dimension:
            self.best = plan, split
        room, approximation = ACCEPT * self.epsilon - split.rounding, split.remainder + split.dropped
        if not plan.kernels or approximation > 0.5 * room:
            return None
        return tolerance * min(AIM * room / max(approximation, 1e-300), 16.0)

    def _not_met(self, plan: P, split: Split, tolerance: float) -> float | None:
        """A finer one, unless it is the budget or rounding that stands against it."""
        room, approximation = ACCEPT * self.epsilon - split.rounding, split.remainder + split.dropped
        if self.beyond is not None:
            asked = tolerance * room / max(approximation, 1e-300)
            raise self._beyond_budget(self.beyond, self._needs(asked, self.beyond), split)
        if room <= 0 or not plan.kernels:
            raise self._rounding_alone(split)
        shrink = AIM * room / approximation if approximation < inf else 0.01
        return self._if_known_so_well(tolerance * min(max(shrink, 1e-4), 0.7))

    def _if_known_so_well(self, tolerance: float) -> float | None:
        """No coefficient is known better than to u."""
        return tolerance if tolerance * self.finest >= self.arithmetic.u else None

    def _within_budget(self, tolerance: float, refusal: DegreeBudgetError) -> float:
        """The finest tolerance within the budget; where its plan is dear, what its bound would be decides."""
        beyond = self.beyond = self.beyond or refusal
        tolerance = tolerance * refusal.excess * (1 + 1e-9)
        if refusal.dear:
            approximation = self._sketched(tolerance)
            if approximation > ACCEPT * self.epsilon:
                needs = self._needs(tolerance * ACCEPT * self.epsilon / approximation, beyond)
                guess = useful(MARGIN / AIM * approximation, self.target)
                raise RefusedError(
                    _first(beyond), [*needs, *at_a_guess(guess), SMOOTHER, *self.advice], guess
                ) from None
        if tolerance == inf:
            raise self._beyond_budget(beyond, _tightest(beyond)) from None
        return tolerance

    def _sketched(self, tolerance: float) -> float:
        """The bound without rounding."""
        plan = sketched(self.decomposition, self.kernels, self.scales, tolerance, self.floors)
        try:
            return bound(plan, self.arithmetic, self.cells, self.pieces, Switches(rounding=False))
        except DomainError:
            return inf

    def _needs(self, tolerance: float, beyond: DegreeBudgetError) -> list[str]:
        """What the tolerance that ε asks for would need; where there is none, what the tightest tried would."""
        if tolerance > 0:
            try:
                self._planned(tolerance)
            except DegreeBudgetError as refusal:
                return list(refusal.reasons)
            except (RefusedError, DomainError):
                pass
        return _tightest(beyond)

    def _beyond_budget(self, beyond: DegreeBudgetError, needs: list[str], split: Split | None = None) -> RefusedError:
        """What the asked ε needs, and the ε of the finest plan within the budget, where its bound is known."""
        least = None if split is None else useful(MARGIN * split.total, self.target)
        return reached(_first(beyond), needs, least, [SMOOTHER, *self.advice])

    def _other_budget(self, refusal: RefusedError) -> RefusedError:
        if self.beyond is not None:
            return self._beyond_budget(self.beyond, _tightest(self.beyond))
        if self.nearest.total == inf:
            return refusal
        guess = useful(MARGIN / AIM * self.nearest.total, self.target)
        return RefusedError(_first(refusal), [*_tightest(refusal), *at_a_guess(guess)], guess)

    def _rounding_alone(self, split: Split) -> RefusedError:
        least = useful(max(2.5 * self.nearest.rounding, MARGIN * self.nearest.total), self.target)
        alone = f"rounding alone is {split.rounding:.2g}"
        if split.rounding == inf:
            alone = f"what rounding does to {UNBOUNDED} is not bounded"
        return RefusedError(
            f"ε = {self.epsilon:g} is not reachable in {self.arithmetic.name} arithmetic: {alone}",
            [*at_a_guess(least), *self.advice],
            reachable=least,
        )


def _tightest(refusal: RefusedError) -> list[str]:
    return [f"{reason} (at the tightest tolerance tried)" for reason in refusal.reasons]


def _first(refusal: RefusedError) -> str:
    return str(refusal).splitlines()[0]

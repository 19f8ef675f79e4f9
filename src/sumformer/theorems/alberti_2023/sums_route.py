"""A 4.1 for targets made of sums: decompose, interpolate what is mixed, cut as far as ε allows, count everything.

f(X)_i = h(x_i, Σ_j k_1(x_i, x_j), …) with analytic k; polynomials written with sums are the case without interpolation
(route *exact*: the error is rounding only). d' and the bound do not depend on n for means and ratios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from sumformer.algebra.interval import Interval
from sumformer.errors import DomainError, RefusedError
from sumformer.nn.token_sum import levels
from sumformer.targets import Binary, Node, Reduce, postorder
from sumformer.targets.domain import Tokens
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_overflow
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition, decompose
from sumformer.theorems.alberti_2023.error_bound import ErrorBound
from sumformer.theorems.alberti_2023.expansion import Grouping
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, KernelStudy, Studies
from sumformer.theorems.alberti_2023.kernel_errors import Switches
from sumformer.theorems.alberti_2023.plan import Plan, make_plan
from sumformer.theorems.alberti_2023.ranges import reduction_ranges

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
class SumsResult:
    """A plan whose bound is at most ε."""

    plan: Plan
    grouping: Grouping
    split: Split

    @property
    def exact(self) -> bool:
        return self.plan.decomposition.polynomial


def sums_route(target: Target, epsilon: float, arithmetic: Arithmetic) -> SumsResult:
    """The smallest network found whose bound is ≤ ε, or a refusal with what is reachable."""
    refuse_overflow(target.box, arithmetic)
    results: list[SumsResult] = []
    refusals: list[RefusedError | DomainError] = []
    seen: list[Decomposition] = []
    for grouping in ("split", "joint"):
        try:
            decomposition = decompose(target.countless, target.box, grouping)
            if any(_same(decomposition, other) for other in seen):
                continue
            seen.append(decomposition)
            results.append(_search(target, epsilon, arithmetic, decomposition, grouping))
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


def _search(
    target: Target, epsilon: float, arithmetic: Arithmetic, decomposition: Decomposition, grouping: Grouping
) -> SumsResult:
    """Tolerances in turn: the bound is nearly proportional to the tolerance, so a few trials suffice."""
    cells = Cells(target.box)
    pieces = token_pieces(decomposition, cells, target.tokens)
    studies = Studies(target.box)
    kernels = {k: studies.of(k) for k in decomposition.kernels}
    normalised = _normalised(decomposition)
    _refuse_lost_precision(normalised, kernels, epsilon, arithmetic, target)
    scales = _scales(normalised, kernels)
    tolerance, best, reachable = epsilon, None, float("inf")
    for _ in range(TRIALS):
        try:
            plan = make_plan(decomposition, kernels, scales, tolerance, arithmetic.dtype)
        except DegreeBudgetError as refusal:
            if best is not None:
                break
            guess = 2 * epsilon * refusal.excess
            reasons = [*refusal.reasons, f"reachable here: ε ≈ {guess:.2g}; or a smaller box, a smoother kernel"]
            raise RefusedError(str(refusal).splitlines()[0], reasons, guess) from None
        try:
            split = measure(plan, arithmetic, cells, pieces)
        except DomainError:  # the exact values stay in the domain; these approximations may not: refine
            if not plan.kernels:
                raise
            tolerance *= 0.03
            continue
        reachable = min(reachable, split.total)
        room, approximation = ACCEPT * epsilon - split.rounding, split.remainder + split.dropped
        if split.total <= ACCEPT * epsilon:
            if best is None or plan.latent_dimension < best.plan.latent_dimension:
                best = SumsResult(plan, grouping, split)
            if not plan.kernels or approximation > 0.5 * room:
                break
            tolerance *= min(0.8 * room / max(approximation, 1e-300), 16.0)
        elif best is not None:
            break
        elif room <= 0 or not plan.kernels:
            least = max(2.5 * split.rounding, MARGIN * split.total)
            raise RefusedError(
                f"ε = {epsilon:g} is not reachable in {arithmetic.name} arithmetic: rounding alone is "
                f"{split.rounding:.2g}",
                [f"reachable here: ε ≈ {least:.2g}", *_advice(arithmetic)],
                reachable=least,
            )
        else:
            shrink = 0.8 * room / approximation if approximation < float("inf") else 0.01
            tolerance *= min(max(shrink, 1e-4), 0.7)
    if best is None:
        met = MARGIN * reachable if reachable < float("inf") else None
        reason = "no finite bound was proved" if met is None else f"reachable here: ε ≈ {met:.2g}"
        raise RefusedError(f"ε = {epsilon:g} was not reached by the sums route", [reason, *_advice(arithmetic)], met)
    return best


def _advice(arithmetic: Arithmetic) -> list[str]:
    if arithmetic.name == "float32":
        return ["dtype='mixed' keeps float32 in and out and computes in float64"]
    return []


@dataclass(frozen=True)
class TokenPiece:
    """Some of the token counts, and where the reductions lie for them."""

    tokens: Tokens
    ranges: Mapping[Reduce, Interval]


def token_pieces(decomposition: Decomposition, cells: Cells, tokens: Tokens) -> list[TokenPiece]:
    """The token counts in pieces [m, 2m], where the target has true sums: a sum's size and its error grow together."""
    expression = decomposition.expression
    counts = [tokens]
    if any(s.reduction.kind in ("sum", "sum_others") for s in decomposition.sums):
        counts, low = [], tokens.minimum
        while low <= tokens.maximum:
            high = min(2 * low, tokens.maximum)
            counts.append(Tokens(low, high))
            low = high + 1
    return [TokenPiece(piece, reduction_ranges(expression, cells, piece)) for piece in counts]


def measure(plan: Plan, arithmetic: Arithmetic, cells: Cells, pieces: Sequence[TokenPiece]) -> Split:
    """The bound and its parts; the parts add up to the bound."""

    def bound(switches: Switches) -> float:
        return max(ErrorBound(plan, arithmetic, p.tokens, cells, switches, p.ranges).total() for p in pieces)

    total = bound(Switches())
    if not plan.kernels:
        return Split(0.0, 0.0, total)
    remainder = bound(Switches(dropped=False, rounding=False))
    approximation = max(bound(Switches(rounding=False)), remainder)
    total = max(total, approximation)
    return Split(remainder, approximation - remainder, total - approximation)


def _normalised(decomposition: Decomposition) -> list[tuple[Node, ...]]:
    """The kernels of every denominator that is a reduction."""
    denominators = {
        part.right
        for part in postorder(decomposition.expression)
        if isinstance(part, Binary) and part.op == "/" and isinstance(part.right, Reduce)
    }
    parts = [s.components for s in decomposition.sums if s.reduction in denominators]
    return [term.kernels for components in parts for terms in components for term in terms if term.kernels]


def _refuse_lost_precision(
    normalised: list[tuple[Node, ...]],
    studies: Mapping[Node, KernelStudy],
    epsilon: float,
    arithmetic: Arithmetic,
    target: Target,
) -> None:
    """A kernel normalised by its own sum loses max K / min K of its digits, whatever the degree: known beforehand."""
    roundings = levels(target.tokens.maximum, arithmetic.group) * arithmetic.group
    for kernels in normalised:
        ranges = [studies[k].range for k in kernels]
        if all(low > 0 for low, _ in ranges):
            loss = prod(high / low for low, high in ranges) * roundings * arithmetic.u
            if loss > 2 * epsilon:
                least = 5 * loss if 5 * loss < 1 else None
                best = "no useful ε is reachable" if least is None else f"reachable here: ε ≈ {least:.2g} at best"
                raise RefusedError(
                    f"ε = {epsilon:g} is not reachable in {arithmetic.name} arithmetic: the kernel falls to "
                    f"{prod(low / high for low, high in ranges):.1e} of its largest value and is divided by its sum",
                    [f"{best}; a smaller box or a wider kernel would help", *_advice(arithmetic)],
                    reachable=least,
                )


def _scales(normalised: list[tuple[Node, ...]], studies: Mapping[Node, KernelStudy]) -> dict[Node, float]:
    """Errors count relative to the least value of a kernel that is normalised by its own sum, else to its largest."""
    divided = {kernel for kernels in normalised for kernel in kernels}
    return {
        k: s.range[0] if k in divided and s.range[0] > 0 else max(abs(s.range[0]), abs(s.range[1]), 1e-300)
        for k, s in studies.items()
    }

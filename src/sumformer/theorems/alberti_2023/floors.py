"""How low a mean may fall that is divided by, and what errors of its kernels count relative to.

S/Σ K loses the digits by which Σ K is smaller than K at its largest: the floor of mean(b K)/mean(b) is K_min, or, with
the own token among those summed, about K(x, x)/n. A tolerance is relative to that floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.errors import RefusedError
from sumformer.nn.token_sum import levels
from sumformer.targets import Binary, Node, Reduce, postorder
from sumformer.targets.domain import Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition, Term
from sumformer.theorems.alberti_2023.guesses import at_a_guess, useful
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.own_token import least_share

Floors = Mapping[tuple[Node, ...], float]


def floors_of(
    decomposition: Decomposition, studies: Mapping[Node, KernelStudy], cells: Cells, tokens: Tokens, own_token: bool
) -> Floors:
    """For every product of kernels that is divided by."""
    return {t.kernels: _floor(t, studies, cells, tokens, own_token) for t in _divisors(decomposition)}


def _divisors(decomposition: Decomposition) -> list[Term]:
    """The terms with kernels of every denominator that is a reduction."""
    denominators = {
        part.right
        for part in postorder(decomposition.expression)
        if isinstance(part, Binary) and part.op == "/" and isinstance(part.right, Reduce)
    }
    parts = [s.components for s in decomposition.sums if s.reduction in denominators]
    return [term for components in parts for terms in components for term in terms if term.kernels]


def _floor(term: Term, studies: Mapping[Node, KernelStudy], cells: Cells, tokens: Tokens, own_token: bool) -> float:
    """How low a mean of the product of kernels may fall; 0 where nothing positive is known."""
    lows = [studies[k].range[0] for k in term.kernels]
    least = prod(lows) if all(low > 0 for low in lows) else 0.0
    if not own_token or min(lows) < 0:
        return least
    channel = evaluate(term.channel, IntervalOperations(), Environment(y=cells.y))
    return least_share(term.kernels, term.channel, least, float(channel.abs_upper().max()), cells, tokens.maximum)


def refuse_lost_precision(
    floors: Floors,
    studies: Mapping[Node, KernelStudy],
    epsilon: float,
    arithmetic: Arithmetic,
    target: Target,
    advice: list[str],
) -> None:
    """A kernel normalised by its own sum loses max K / min K of its digits, whatever the degree: known beforehand."""
    roundings = levels(target.tokens.maximum, arithmetic.group) * arithmetic.group + arithmetic.merges
    for kernels, floor in floors.items():
        largest = prod(studies[k].range[1] for k in kernels)
        if floor > 0:
            loss = largest / floor * roundings * arithmetic.u
            if loss > 2 * epsilon:
                least = useful(5 * loss, target)
                raise RefusedError(
                    f"ε = {epsilon:g} is not reachable in {arithmetic.name} arithmetic: the kernel falls to "
                    f"{floor / largest:.1e} of its largest value and is divided by its sum",
                    [*at_a_guess(least), "a smaller box or a wider kernel would help", *advice],
                    reachable=least,
                )


def scales_of(floors: Floors, studies: Mapping[Node, KernelStudy], own_token: bool) -> dict[Node, float]:
    """What errors of a kernel count relative to: its largest value; where it is normalised by its own sum, its least.

    By the own token, the floor of the product: an error of one kernel is multiplied by the others, at most.
    """
    scales = {k: max(abs(s.range[0]), abs(s.range[1]), 1e-300) for k, s in studies.items()}
    largest = dict(scales)
    for kernels, floor in floors.items():
        for k in kernels:
            if own_token and floor > 0:
                scales[k] = min(scales[k], floor / prod(largest[other] for other in kernels if other != k))
            elif studies[k].range[0] > 0:
                scales[k] = studies[k].range[0]
    return scales

"""g ≈ Σ_{k ≤ N} c_k T_k on [lo, hi], N ~ log 1/ε, by products of saws, each ~ log 1/ε layers of a few units.

Some 2√N products in a row, or log N in the tree: layers ~ log^{3/2} 1/ε or log 1/ε · log log 1/ε.
|error| ≤ rest of the series + what the products add (Clenshaw's rule) + |p'| · rounding of the argument, the rounding
of every layer in float64 included; each term is computed from the stages as they are. Degree, m and the split of the
tolerance are those of the smallest network, in the sense of `prefer`, among the ones tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.gadgets.clenshaw import RESERVES, Rule, fold
from sumformer.gadgets.clenshaw_rounding import proved
from sumformer.gadgets.clenshaw_stages import Schedule, Stages, schedule
from sumformer.gadgets.identity import identity
from sumformer.gadgets.reading import Reading, require_range
from sumformer.gadgets.rounding import U
from sumformer.gadgets.saw import Prefer
from sumformer.gadgets.series import Series, series
from sumformer.gadgets.units import Gadget, Size
from sumformer.targets import Node, to_source

SHARES = (0.5, 0.2, 0.05)  # of the tolerance, for the rest of the series
FOLDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32)
SAWS: dict[Prefer, tuple[Prefer, ...]] = {  # tried; wide ones round more
    "depth": ("depth", "parameters"),
    "width": ("width",),
    "parameters": ("parameters", "width"),
}
MOST_STEPS = 80
TRIES = 4
WIDER_TRIED = (10, 1000)  # times the tolerance, to say what can be reached


@dataclass(frozen=True, eq=False)
class Candidate:
    """A schedule, its kind of saws, and what is lost before its products: series, coefficients, argument rounded."""

    schedule: Schedule
    saws: Prefer
    before: float
    size: Size


def deep(g: Node, t: Reading, place: str, tolerance: float, prefer: Prefer = "parameters") -> Gadget:
    """g(t) within the tolerance; its workspace starts at 0 and is not cleared."""
    require_range(t)
    if not (t.lo < t.hi and tolerance > 0):
        raise DomainError(f"expected a range lo < hi and a tolerance > 0, got [{t.lo}, {t.hi}] and {tolerance}")
    for wider in (1, *WIDER_TRIED):
        found = _smallest(g, t, place, tolerance * wider, prefer)
        if found is not None and wider == 1:
            return found
        if found is not None:
            break
    raise RefusedError(
        f"{to_source(g)} on [{t.lo:.4g}, {t.hi:.4g}] is not reached to {tolerance:.2g} by products in float64, "
        f"{'nor near it' if found is None else f'but to {found.error:.2g}'}; "
        "take the shallow realisation, a wider tolerance or a shorter range",
        reachable=None if found is None else found.error,
    )


def _smallest(g: Node, t: Reading, place: str, tolerance: float, prefer: Prefer) -> Gadget | None:
    size = t.known_size
    if size is None:
        raise InputError("deep: expected a reading with a size, a bound of Σ|weight · z|, where it has several places")
    s = series(g, t.lo, t.hi, tolerance)
    e_t = (len(t.weights) + 16) * 2 * U * ((size + abs(t.offset) + abs(s.centre)) / s.radius + 4)
    (argument,) = identity(((t - s.centre) / s.radius).within(-1.0, 1.0), {f"{place}.t": 1.0}).stages[0]
    for reserve in RESERVES:
        found = sorted(candidates(s, tolerance, prefer, e_t, reserve), key=lambda c: order(c.size, prefer))
        best = [c for saws in SAWS[prefer] for c in [c for c in found if c.saws == saws][:TRIES]]
        built: list[Gadget] = []
        for candidate in best:
            stages = Stages(candidate.schedule, argument, place, candidate.saws)
            total = (candidate.before + proved(stages)) * (1 + 2.0**-30)
            if total <= tolerance:
                kept = tuple(tuple(stage) for stage in stages.stages if stage)
                built.append(Gadget("polynomial", kept, total, stages.workspace))
        if built:
            return min(built, key=lambda gadget: order(gadget.size, prefer))
    return None


def order(size: Size, prefer: Prefer) -> tuple[int, int, int]:
    """What is least comes first."""
    layers, width, nonzero = size
    orders = {
        "depth": (layers, nonzero, width),
        "width": (width, layers, nonzero),
        "parameters": (nonzero, layers, width),
    }
    return orders[prefer]


def candidates(s: Series, tolerance: float, prefer: Prefer, e_t: float, reserve: float) -> Iterator[Candidate]:
    """Degrees by the share of the rest, m from Clenshaw's rule alone to the tree alone."""
    seen: set[int] = set()
    for share in SHARES:
        if s.error > share * tolerance:
            continue
        c, rest = s.cut(share * tolerance)
        if c.size in seen:
            continue
        seen.add(c.size)
        for m in {min(m, c.size) for m in (*FOLDS, c.size)}:
            if (c.size - 1) // m > MOST_STEPS or (m == c.size > MOST_STEPS):
                continue
            f = fold(c.tolist(), m)
            rule = Rule(f, e_t, reserve)
            before = rest + (f.error + e_t * f.argument) * (1 + rule.beyond)
            if not rule.valid or before >= tolerance:
                continue
            for saws in SAWS[prefer]:
                steps = rule.steps((tolerance - before) * (1 - 2.0**-20), saws)
                if steps is not None:
                    plan = schedule(rule, steps, serial=prefer == "width")
                    yield Candidate(plan, saws, before, plan.size())

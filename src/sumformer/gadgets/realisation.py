"""g on [lo, hi] to a tolerance, deep or shallow: whichever has fewer layers, is narrower, or has fewer weights.

Shallow: one layer of ~ ε^{−1/2} units (`function`). Deep: a polynomial by saws, ~ log² 1/ε weights (`deep`). Sizes are
counted on the units, before any module is built; the shallow one is fitted only where its least size may win.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Literal

from sumformer.errors import InputError, RefusedError
from sumformer.gadgets.deep import deep, order
from sumformer.gadgets.function import curvature, function
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.saw import PREFERENCES, Prefer
from sumformer.gadgets.units import Gadget, Size
from sumformer.targets import Node, to_source

Realisation = Literal["deep", "shallow"]
REALISATIONS: tuple[Realisation, ...] = ("deep", "shallow")


def realise(
    g: Node,
    t: Reading,
    place: str,
    tolerance: float,
    prefer: Prefer = "depth",
    realisation: Realisation | None = None,
) -> Gadget:
    """g(t) within the tolerance; `realisation` forces one of the two."""
    if prefer not in PREFERENCES or realisation not in (None, *REALISATIONS):
        raise InputError(
            f"realise: expected prefer in {PREFERENCES} and realisation in {REALISATIONS} or None, "
            f"got {prefer!r} and {realisation!r}"
        )

    def shallow() -> Gadget:
        return function(t, {place: (g, tolerance)})

    def by_products() -> Gadget:
        return deep(g, t, place, tolerance, prefer)

    if realisation is not None:
        return shallow() if realisation == "shallow" else by_products()
    if not t.lo < t.hi or prefer == "depth":  # there are no fewer layers than one
        first, second = shallow, by_products
    else:
        first, second = by_products, shallow
    try:
        found = first()
    except RefusedError as refused:
        return _other(g, second, refused)
    if prefer == "depth" or order(least(g, t, tolerance), prefer) > order(found.size, prefer):
        return found
    try:
        return min(found, second(), key=lambda gadget: order(gadget.size, prefer))
    except RefusedError:
        return found


MOST = 2.0**53  # segments, where no number bounds them


def least(g: Node, t: Reading, tolerance: float) -> Size:
    """What the shallow realisation takes at least: its fit starts from this many segments and only adds to them."""
    units = max(1, floor(min(MOST, curvature(g, t.lo, t.hi).knots_at(tolerance))))
    return Size(1, units, units * (len(t.weights) + 1))


def _other(g: Node, second: Callable[[], Gadget], refused: RefusedError) -> Gadget:
    try:
        return second()
    except RefusedError as also:
        reachable = [e.reachable for e in (refused, also) if e.reachable is not None]
        raise RefusedError(
            f"{to_source(g)}: neither realisation meets the tolerance",
            [str(refused), str(also)],
            min(reachable, default=None),
        ) from also

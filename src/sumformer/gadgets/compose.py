"""g ∘ f: the layers of f, then those of g on a range widened by f's error e_f:  |error| ≤ e_g + max|g'| · e_f.

f and g beside each other: their layers side by side, their errors each for itself.
"""

from __future__ import annotations

from itertools import zip_longest

from sumformer.errors import InputError
from sumformer.gadgets.units import Gadget


def then(inner: Gadget, outer: Gadget, through: tuple[str, ...], slope: float) -> Gadget:
    """`outer` reads the places `through` that `inner` wrote; `slope` bounds |∂ outer| summed over them."""
    _require_apart(inner, outer)
    error = (outer.error + slope * inner.error) * (1 + 2.0**-40)
    workspace = (*through, *inner.workspace, *outer.workspace)
    return Gadget("composition", (*inner.stages, *outer.stages), error, tuple(dict.fromkeys(workspace)))


def beside(*gadgets: Gadget) -> Gadget:
    """All at once, each at its own places; `errors` lists theirs."""
    _require_apart(*gadgets)
    layers = zip_longest(*(gadget.stages for gadget in gadgets), fillvalue=())
    stages = tuple(tuple(units for part in layer for units in part) for layer in layers)
    errors = tuple(gadget.error for gadget in gadgets)
    workspace = tuple(name for gadget in gadgets for name in gadget.workspace)
    return Gadget("beside", stages, max(errors), workspace, errors)


def _require_apart(*gadgets: Gadget) -> None:
    """No place is written by two of them: each counts on its workspace to start at 0."""
    seen: set[str] = set()
    for gadget in gadgets:
        own = {name for stage in gadget.stages for units in stage for name in (*units.writes, *units.constants)}
        if shared := seen & own:
            raise InputError(f"compose: expected places of their own, got {', '.join(sorted(shared))} twice")
        seen |= own

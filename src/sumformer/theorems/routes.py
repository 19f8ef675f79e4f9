"""The routes of A 4.1 from best to most general, and the choice among them: the first that meets ε."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Any

from sumformer.algebra.rounding import shown_up
from sumformer.errors import DomainError, InputError, RefusedError, UndefinedError
from sumformer.targets import reductions
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.guesses import NEAREST, ReachedError, unnamed, useful
from sumformer.theorems.built import Built, Estimate, in_one_line
from sumformer.theorems.nearest import nearest
from sumformer.theorems.request import asked_epsilon, refuse_coordinates

_HOME = "sumformer.theorems.alberti_2023."
# name → the module of the route and its function; imported when tried
_ROUTES = {
    "exact": ("sums_built", "exact"),
    "sums": ("sums_built", "sums"),
    "mesh": ("mesh_built", "mesh"),
    "symmetric": ("symmetric_route", "symmetric_route"),
    "grid": ("grid_route", "grid_route"),
    "cells": ("cells_route", "cells"),
}
ROUTES = tuple(_ROUTES)
FEW = 64  # tokens; up to here the code of route grid is a few numbers, and the own token is kept as it is
MERGING = ("exact", "sums", "mesh", "cells")  # routes whose Σ may be put together of parts; counts are added exactly
GUESSING = ("exact", "sums", "mesh")  # an ε they name may be a guess; the others are taken at their word
PATIENCE = 5.0  # seconds to look for an ε that can be had


def by_route(
    f: Target | OpaqueTarget, epsilon: float, arithmetic: Arithmetic, route: str | None, code: str | None = None
) -> Built:
    """The network of the forced route, or of the first that meets ε, with why earlier ones were passed over."""
    if isinstance(f, OpaqueTarget):
        if route not in (None, "grid"):
            raise RefusedError(f"route {route} needs a formula", ["a function without one can take route grid only"])
        route = "grid"
    if code is not None and route != "grid":
        raise InputError("construct: a code is an option of route grid; give route='grid' (--route grid) too")
    if route not in (None, *ROUTES):
        raise InputError(f"construct: expected route in {ROUTES}, got {route!r}")
    if arithmetic.merges:
        _refuse_merges(f, route)
    if route is not None:
        return _built(route, f, epsilon, arithmetic, *(() if code is None else (code,)))
    refusals: dict[str, RefusedError | DomainError] = {}
    names = in_order(f)[1:]  # route sums knows a polynomial when it sees one, and then calls itself exact
    for name in (name for name in names if not arithmetic.merges or name in MERGING):
        try:
            return replace(_built(name, f, epsilon, arithmetic), passed_over=_in_lines(refusals))
        except (RefusedError, DomainError) as refusal:
            refusals[_called(name, f)] = refusal
    raise _no_route(f, epsilon, arithmetic, refusals) from next(iter(refusals.values()))


def _refuse_merges(f: Target | OpaqueTarget, route: str | None) -> None:
    if route not in (None, *MERGING):
        raise RefusedError(f"route {route} has no proof for summaries that are merged", [f"{', '.join(MERGING)} have"])
    if f.positioned:
        raise RefusedError("places are counted in one sequence: there are no summaries to merge")
    if isinstance(f, Target) and any(r.kind.endswith("others") for r in reductions(f.expression)):
        raise RefusedError("sum_others and mean_others leave out the own token, which summaries that are merged do not")


def _no_route(
    f: Target | OpaqueTarget, epsilon: float, arithmetic: Arithmetic, refusals: dict[str, RefusedError | DomainError]
) -> RefusedError:
    """What every route says, and the least ε that one of them certifies; a guess counts when it was tried."""
    lines = [unnamed(line) for line in _in_lines(refusals)]  # one ε is named below, for all
    if isinstance(next(iter(refusals.values())), UndefinedError) and f.tokens.minimum < f.tokens.maximum:
        lines = lines[:1]  # a number of tokens would not make it exist
    named = {name: e for name, e in refusals.items() if isinstance(e, RefusedError)}
    reachable = {name: e.reachable for name, e in named.items() if e.reachable is not None}
    guessed = {name for name in reachable if name in GUESSING and not isinstance(named[name], ReachedError)}
    best = min(reachable, key=reachable.__getitem__, default=None)
    if best is not None and best in guessed:
        found = _tried(f, epsilon, arithmetic, best, reachable[best])
        reachable = {name: e for name, e in reachable.items() if name not in guessed}
        reachable |= {} if found is None else {best: found}
        best = min(reachable, key=reachable.__getitem__, default=None)
    least = None if best is None else reachable[best]
    if least is not None:
        lines.append(f"{NEAREST}{shown_up(least, 2)} by route {best}")
    return RefusedError(f"no route certifies ε = {epsilon:g} for this target", lines, least)


def _in_lines(refusals: dict[str, RefusedError | DomainError]) -> tuple[str, ...]:
    return tuple(f"{name}: {in_one_line(refusal)}" for name, refusal in refusals.items())


def in_order(f: Target | OpaqueTarget) -> tuple[str, ...]:
    """The routes as they are tried: of the two that take anything, first the one that is faster for so many tokens."""
    return ROUTES if f.tokens.maximum <= FEW else (*ROUTES[:-2], "cells", "grid")


def _tried(f: Target | OpaqueTarget, epsilon: float, arithmetic: Arithmetic, route: str, guess: float) -> float | None:
    """An ε at which the route goes through, smaller than |f|."""
    refused: list[float] = []  # what refusals named that had tried it: one attempt may take all the time there is

    def attempt(e: float) -> None:
        try:
            _built(route, f, e, arithmetic)
        except ReachedError as refusal:
            refused.append(refusal.reachable or inf)
            raise

    found = nearest(attempt, epsilon, guess, PATIENCE)
    least = min([*refused, *([] if found is None else [found])], default=None)
    return None if least is None or isinstance(f, OpaqueTarget) else useful(least, f)


def _called(route: str, f: Target | OpaqueTarget) -> str:
    """What `route` is called for f: sums, where f is a polynomial, exact."""
    from sumformer.theorems.alberti_2023.sums_built import is_polynomial

    return "exact" if route == "sums" and isinstance(f, Target) and is_polynomial(f) else route


def estimate(f: Target, epsilon: float, arithmetic: Arithmetic, route: str) -> Estimate:
    """What `route` would cost and certify, without building: `<route>_estimate` of its module."""
    refuse_coordinates(f)
    epsilon, (module, _) = asked_epsilon(epsilon), _ROUTES[route]
    predict: Callable[..., Estimate] = getattr(import_module(_HOME + module), f"{route}_estimate")
    return predict(f, epsilon, arithmetic)


def _built(route: str, *arguments: Any) -> Built:
    module, name = _ROUTES[route]
    built: Built = getattr(import_module(_HOME + module), name)(*arguments)
    return built

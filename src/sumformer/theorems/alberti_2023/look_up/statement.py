"""A 4.3–4.5, discontinuous: N(X)_i = f at the centres of all tokens' cells, looked up.

step   sup_X ‖f(X) − N(X)‖_∞ ≤ L·δ/2 + rounding of the table, L the modulus of all tokens, the own one included
relu   N is continuous, so this holds off the ramps only; over all inputs, with V the volume of the domain, μ the share
       of it where some token lies on a ramp, and R_w ≥ |f_w − N_w| (on ramps N stays between two entries),
         d_p(f, N) ≤ (V n width)^{1/p} · (that bound) + (V μ n Σ_w R_w^p)^{1/p}
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import Any

from sumformer.algebra.rounding import FloatArray, fraction_bounds, shown_up
from sumformer.certificates.certificate import OF_A_COMPILED_NETWORK, ErrorTerm
from sumformer.errors import InputError, RefusedError
from sumformer.nn.look_up_transformer import ACTIVATIONS
from sumformer.targets.lipschitz import LipschitzBound, lipschitz_bound
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.mean_head import MeanHead
from sumformer.theorems.alberti_2023.look_up.network import look_up_network
from sumformer.theorems.alberti_2023.look_up.plan import ACCEPT, MOST_ENTRIES, cells_per_axis, most_cells
from sumformer.theorems.alberti_2023.look_up.table import Table, entries, make_table
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, norm_name
from sumformer.theorems.integral_norm import SUMMED, powers, root

RAMPS = 0.04  # of ε
LEAST_RAMP = 2.0**-45  # of a side
LEAST = 1e-300  # enclosures of 0 have a width
FARTHEST = 2**200  # |x|: beyond, x over the width of a ramp may overflow


def look_up_asked(route: str | None, activation: str | None, p: float | None) -> bool:
    """Route grid; what belongs to it alone is refused elsewhere."""
    if route != "grid" and (activation is not None or p is not None):
        what, more = ("activation", "route='grid' (--route grid)")
        if p is not None:
            what, more = "p", "route='grid' and activation='relu' (--route grid --activation relu)"
        raise InputError(f"construct: {what} is an option of look-up tables here; give {more} too")
    return route == "grid"


def look_up_statement(
    f: Target, epsilon: float, arithmetic: Arithmetic, head: MeanHead, activation: str | None, p: float | None
) -> Built:
    """The network with as few cells as ε allows."""
    activation = _check(f, arithmetic, head.architecture, activation, p)
    p = 1.0 if activation == "relu" and p is None else p
    share = 1.0 if p is None else max(1.0, _scale(f, p))
    modulus = lipschitz_bound(f, wrt="all", weights=[fraction_bounds(r)[1] for r in f.box.radius])
    per_axis = cells_per_axis(f, modulus, epsilon, activation, head.roundings, share)
    table = make_table(f, per_axis)
    terms = _sup_terms(modulus, per_axis, table)
    off = sum(t.bound for t in terms)
    constants: dict[str, Any] = {
        "activation": activation,
        "cells": per_axis,
        "entries": len(table.keys),
        "code": table.code[-1],
        "lipschitz": modulus.value,  # when every token moves by half of each side of the box
        "lipschitz_attained": modulus.attained,
    }
    ramps = [0.0] * f.d
    if p is not None:
        scale, reach = _scale(f, p), _reach(table, off)
        ramps, touched = _ramps(f, per_axis, p, epsilon, reach)
        terms = [ErrorTerm(t.name, t.kind, nextafter(t.bound * scale * SUMMED, inf)) for t in terms]
        terms.append(ErrorTerm("ramps", "proved", _ramp_term(f, touched, p, reach)))
        constants |= {"p": p, "sup_off_ramps": off, "ramp_share": touched, "ramps": ramps}
    _refuse_beyond(epsilon, terms, off, p)
    return Built(
        network=look_up_network(f, per_axis, table, head.make, activation, ramps),
        route="grid",
        why=_why(f, len(table.keys), per_axis, p),
        terms=tuple(t for t in terms if t.bound > 0),
        latent_dimension=1,
        constants=constants,
        assumptions=OF_A_COMPILED_NETWORK,
        architecture=head.architecture,
        norm=norm_name(p),
    )


def look_up_last(f: Target, epsilon: float, arithmetic: Arithmetic, head: MeanHead) -> Built:
    """For a target that nothing else takes, in the sup norm; the modulus is not sought for a table of one cell."""
    if f.tokens.exact and most_cells(f, "step", head.roundings) < 2:
        count = entries(2**f.d, f.tokens.maximum)
        reason = f"2 along each side make {count} entries; at most {MOST_ENTRIES['step']} fit"
        raise RefusedError("a look-up table would have one cell", [reason])
    return look_up_statement(f, epsilon, arithmetic, head, None, None)


def _sup_terms(modulus: LipschitzBound, per_axis: int, table: Table) -> list[ErrorTerm]:
    """Of sup |f − N|, off the ramps where there are any."""
    ratio = fraction_bounds(Fraction(1, per_axis))[1] * (1 + 2.0**-20)  # edges are rounded: `FAR`
    rounding = ROUNDING_SLACK * table.error + 2.0**-51 * table.variation + LEAST
    return [
        ErrorTerm("modulus of continuity at the cells", "enclosed", modulus.value * ratio * SLACK),
        ErrorTerm("rounding", "rounding", rounding),
    ]


def _refuse_beyond(epsilon: float, terms: list[ErrorTerm], off: float, p: float | None) -> None:
    """Cells were chosen for ε; what is left over may take it all the same."""
    total = sum(t.bound for t in terms)
    if max(total, off) <= epsilon:
        return
    rest = total - terms[0].bound
    least = 2 * rest / (1 - ACCEPT)
    reason = "rounding and the thinnest ramps take" if p is not None else "rounding takes"
    raise RefusedError(
        f"ε = {epsilon:g}: {reason} {rest:.2g} of it", [f"reachable here: ε ≈ {shown_up(least, 2)}"], least
    )


def _check(f: Target, arithmetic: Arithmetic, architecture: str, activation: str | None, p: float | None) -> str:
    activation = "step" if activation is None else activation
    if activation not in ACTIVATIONS:
        raise InputError(f"{architecture}: expected activation in {ACTIVATIONS}, got {activation!r}")
    if p is not None and activation == "step":
        raise InputError(f"{architecture}: steps meet the sup norm; p is for activation='relu' (--activation relu)")
    if p is not None and not 1 <= p < inf:
        raise InputError(f"construct: expected 1 ≤ p < ∞ for d_p, got {p}")
    reasons = []
    if arithmetic.name != "float64":
        reasons.append(f"certified in float64 only; asked for {arithmetic.name}")
    if not f.tokens.exact:
        reasons.append(f"a table has one number of tokens (--tokens 3); now it is {f.tokens.formula()}")
    if f.positioned:
        reasons.append("places of tokens are not looked up; a sumformer takes them by route grid")
    if any(abs(end) > FARTHEST for end in (*f.box.lower, *f.box.upper)):
        reasons.append(f"the box reaches beyond {float(FARTHEST):.2g}; write the target in other units")
    if reasons:
        raise RefusedError(f"a look-up {architecture} is not built for this", reasons)
    return activation


def _why(f: Target, count: int, per_axis: int, p: float | None) -> str:
    table = f"a table of {count} entries over {per_axis}{'' if f.d == 1 else f'^{f.d}'} cells, one attention layer"
    if p is None:
        return table
    counted = f"(volume {_volume(f):.3g} · n {f.tokens.maximum} · width {f.width}){'' if p == 1 else f'^(1/{p:g})'}"
    return (
        f"{table}; the sup bound holds off the ramps; ε is met in {norm_name(p)}, whose terms are those of sup |f − N| "
        f"times {counted} = {_scale(f, p):.3g}"
    )


def _volume(f: Target) -> float:
    return fraction_bounds(f.box.volume**f.tokens.maximum)[1]


def _scale(f: Target, p: float) -> float:
    """(V n width)^{1/p}: d_p of a difference that is 1 everywhere."""
    scale = root(_volume(f), f.tokens.maximum * f.width, p)
    if not scale < 2.0**900:
        raise RefusedError("d_p over a domain of this volume leaves float64", ["activation='step' has the sup norm"])
    return scale


def _reach(table: Table, off: float) -> FloatArray:
    """R_w ≥ |f_w − N_w| anywhere: both lie within `off` of the entries; sums on ramps are rounded."""
    rounded = (len(table.keys) + 8) * 2.0**-52 * table.variation
    reach: FloatArray = (table.values.max(0) - table.values.min(0) + off + rounded) * (1 + 1e-6)
    return reach


def _ramps(f: Target, per_axis: int, p: float, epsilon: float, reach: FloatArray) -> tuple[list[float], float]:
    """Widths 2^k, as large as RAMPS·ε allows, for each coordinate, and the share of inputs with a token on a ramp."""
    sides = [float(high - low) for low, high in zip(f.box.lower, f.box.upper, strict=True)]
    part = 0.25 / per_axis
    while True:
        ramps = [_power_below(side * part) for side in sides]
        shares = [(per_axis - 1) * w / side for w, side in zip(ramps, sides, strict=True)]
        touched = min(1.0, f.tokens.maximum * sum(shares) * (1 + 1e-6))
        if part <= LEAST_RAMP or _ramp_term(f, touched, p, reach) <= RAMPS * epsilon:
            return ramps, touched
        part /= 2


def _ramp_term(f: Target, touched: float, p: float, reach: FloatArray) -> float:
    return root(_volume(f), touched * f.tokens.maximum * float(powers(reach, p).sum()), p)


def _power_below(value: float) -> float:
    power = 2.0**-1000
    while power * 2 <= value:
        power *= 2
    return power

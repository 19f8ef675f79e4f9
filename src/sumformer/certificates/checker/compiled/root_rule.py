"""√max(t, 0) by one hidden layer: what it errs by, and what an error of t does to it (`root_modulus.py`).

F is linear on a piece and the root concave on [a, b], a ≥ 0: F − w√t, w > 0, lies below its larger end. It lies above
its smaller end − w (√b − √a)²/4(√a + √b), as far as the root rises over its chord, and, where F ≥ αt + β, α > 0, above
β − w²/4α, which αt + β − w√t is where its slope is 0. Left of 0 both are linear: 0 is an end of pieces.
"""

from __future__ import annotations

import numpy as np

from sumformer.certificates.checker.compiled.ledger import Entry, Gadget
from sumformer.certificates.checker.compiled.piecewise import Pieces, pieces, shifted
from sumformer.certificates.checker.compiled.root_modulus import ROOT, root_moves
from sumformer.certificates.checker.compiled.rules import Rules
from sumformer.certificates.checker.compiled.stream import UP
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.verification import Unproved


def root(rules: Rules, gadget: Gadget, entry: Entry) -> None:
    """w √max(t, 0) into the coordinate of one value."""
    (name,) = gadget.values
    value, units = rules.stream.values[name], rules.units(entry)
    if value.expression != ROOT:
        raise Unproved("a root gadget's value is not sqrt(max(x, 0))")
    f = value.of[0]
    error = rules.expect(units, f)
    c, weight = rules.stream.destination(name)
    if set(units.writes) != {c} or not set(units.constants) <= {c}:
        raise Unproved("a root gadget writes elsewhere than to its value")
    low, high = rules.stream.span(f)
    e = float(error[1]) * UP
    slack = 4e-16 * (abs(low) + abs(high) + e + abs(f.offset)) + 1e-300
    knots, writes = np.append(-units.bias, -f.offset), np.append(units.writes[c], 0.0)
    p = pieces(knots, writes, low - e - f.offset - slack, high + e - f.offset + slack)
    below, above = gap(p, shifted(p.ends, f.offset), weight)
    constant = units.constants.get(c, 0.0)
    delta = float(np.maximum(abs(below + constant), abs(above + constant))) * UP
    rules.write(c, {name: weight}, abs(weight) * root_moves(low, error) * UP + delta, p.size)


def gap(p: Pieces, t: Interval, weight: float) -> tuple[float, float]:
    """[min, max] of F(s) − w √max(t, 0) over the pieces, `t` their ends; 0 is one of these, or outside."""
    if weight < 0:
        below, above = gap(Pieces(p.ends, -p.hi, -p.lo), t, -weight)
        return -above, -below
    lows, highs = np.sqrt(np.maximum(t.lo, 0.0)) / UP, np.sqrt(np.maximum(t.hi, 0.0)) * UP
    least, most = p.lo - weight * highs, p.hi - weight * lows
    a, b = lows[:-1], highs[1:]
    with np.errstate(all="ignore"):
        rise = np.where(b > 0, weight * (b - a) * ((b - a) / (a + b)) / 4 * UP, 0.0)  # no square underflows
        slope = np.diff(p.lo) / np.diff(p.ends)
        start = np.minimum(p.lo[:-1] - slope * t.hi[:-1], p.lo[1:] - slope * t.hi[1:])
        inside = start - weight**2 / (4 * slope) * UP
    slack = 1e-15 * (p.size + weight * float(highs.max())) + 1e-300
    low = np.minimum(least[:-1], least[1:]) - rise
    sure = (t.lo[:-1] >= 0) & (slope > 0) & np.isfinite(slope * t.hi[1:]) & np.isfinite(inside)
    off = 1e-15 * np.where(sure, p.size + slope * t.hi[1:] + weight**2 / np.where(sure, slope, 1.0), 0.0)
    low = np.where(sure, np.maximum(low, inside - off), low)
    return float(low.min()) - slack, float(most.max()) + slack

"""The ideal program, value by value: its form over common atoms, and a range derived again from the formula.

input [−1, 1]; a mean lies where what it averages lies; a function on the hull of its values over cells; products and
sums by interval arithmetic; each of them in constant ± mass of its form, and where S says (`refine`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from flint import fmpq

from sumformer.certificates.checker.compiled.atoms import UP, Terms, rational
from sumformer.certificates.checker.compiled.element import Element, between, moderate
from sumformer.certificates.checker.compiled.files import Compiled
from sumformer.certificates.checker.compiled.forms import INTERVALS, Forms
from sumformer.certificates.checker.compiled.ideal import Ideal
from sumformer.certificates.checker.compiled.ledger import Functional, Value
from sumformer.certificates.checker.compiled.root_modulus import ROOT
from sumformer.certificates.checker.interval import Interval, meet
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Token

CELLS = 256
SMALL = 64  # forms up to this length are also bounded by their mass

Program = dict[str, Element]


def derive(net: Compiled, forms: Forms, ideal: Ideal) -> Program:
    """Every value of the ledger."""
    out: Program = {}
    for value in net.values:
        try:
            found = ideal.refine(value, _value(value, net.d, forms, out))
        except Unproved as why:
            raise Unproved(f"{value.name}: {why}") from None
        if not bool(found.range.lo <= found.range.hi) or not math.isfinite(found.size):
            raise Unproved(f"{value.name}: its range is empty or unbounded")
        out[value.name] = found
    return out


def _value(value: Value, d: int, forms: Forms, known: Mapping[str, Element]) -> Element:
    if value.op == "input":
        return forms.chebyshev(tuple(int(c == value.coordinate) for c in range(d)))
    if value.op == "mean":
        return forms.mean(known[value.of[0].terms[0][0]])
    arguments = [functional(f, forms, known) for f in value.of]
    if value.op == "sum":
        return _bounded(arguments[0], forms)
    if value.op == "product":
        return _bounded(forms.mul(*arguments), forms)
    if value.expression is None:
        raise Unproved("a function without its expression")
    (t,) = arguments
    if value.expression == ROOT:
        return _bounded(forms.root(t), forms)
    found = components(value.expression, forms, lambda part: [t] if isinstance(part, Token) else None)[0]
    hull = values_on_cells(value.expression, float(t.range.lo), float(t.range.hi))
    return _bounded(Element(found.terms, found.error, meet(found.range, hull)), forms)


def functional(f: Functional, forms: Forms, known: Mapping[str, Element]) -> Element:
    """Σ w v + offset, exactly in the weights as written."""
    if len(f.terms) == 1 and f.terms[0][1] == 1 and not f.offset:
        return known[f.terms[0][0]]
    terms: Terms = {forms.atoms.one: rational(f.offset)} if f.offset else {}
    for name, weight in f.terms:
        factor = rational(moderate(weight))
        for m, c in known[name].terms.items():
            terms[m] = terms[m] + factor * c if m in terms else factor * c
    terms = {m: c for m, c in terms.items() if c}
    w = np.array([weight for _, weight in f.terms])
    low = np.array([float(known[name].range.lo) for name, _ in f.terms])
    high = np.array([float(known[name].range.hi) for name, _ in f.terms])
    slack = 1e-15 * (math.fsum(np.abs(w) * np.maximum(np.abs(low), np.abs(high))) + abs(f.offset)) + 1e-300
    least, most = (
        math.fsum([*np.minimum(w * low, w * high), f.offset]),
        math.fsum([*np.maximum(w * low, w * high), f.offset]),
    )
    positive = f.offset >= 0 and bool((w >= 0).all() and (low >= 0).all())
    error = math.fsum(abs(weight) * known[name].error for name, weight in f.terms) * UP
    return Element(terms, error, between(max(least - slack, 0.0) if positive else least - slack, most + slack))


def _bounded(e: Element, forms: Forms) -> Element:
    """Within constant ± the mass of the rest."""
    if len(e.terms) > SMALL:
        return e
    one = forms.atoms.one
    middle = e.terms.get(one, fmpq(0))
    mass = forms.atoms.mass({m: c for m, c in e.terms.items() if m != one}) + e.error
    if not math.isfinite(mass):
        return e
    low, high = float(middle) - mass, float(middle) + mass
    slack = 1e-15 * (abs(low) + abs(high))
    return Element(e.terms, e.error, meet(e.range, between(low - slack, high + slack)))


def values_on_cells(g: Node, low: float, high: float, count: int = CELLS) -> Interval:
    """The hull of g over [low, high], cell by cell."""
    ends = np.linspace(low, high, count + 1)
    ends[0], ends[-1] = low, high
    x = Interval(ends[:-1], ends[1:])
    found = components(g, INTERVALS, lambda part: [x] if isinstance(part, Token) else None)[0]
    return between(float(np.min(found.lo)), float(np.max(found.hi)))

"""Step 3, normalised kernels: mean(b K g)/mean(b K), numerator and denominator sharing channel and kernels.

With K̃ = K(1 + δ), |δ| ≤ η < 1, b > 0 and K > 0, f = E[g] for weights ∝ bK, and the approximated quotient S satisfies
S − f = E[δ(g − f)]/E[1 + δ], so |S − f| ≤ η/(1 − η) · E|g − f| ≤ η/(1 − η) · diam_y(g)/2: a value that lies between two
numbers deviates from its mean by at most half their distance, on average. Errors of the sums are taken relative to
Σ b, which cancels with the denominator's own Σ b K̃ ≥ K_min (1 − η) Σ b.
Where x is among the tokens summed, Σ b K ≥ κ Σ b (`own_token`) takes the place of K_min: with e ≥ sup |K̃ − K| < κ/2,
Σ b K̃ ≥ (κ − e) Σ b, and |S − f| ≤ Σ b e |g − f|/Σ b K̃ ≤ e/(κ − e) · diam_y(g), as f lies between values of g; and
Σ b K̃ ≥ κ (1 − η) Σ b.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from sumformer.certificates.checker.canonical import CanonicalForms, Form
from sumformer.certificates.checker.features import norm_of, width_of
from sumformer.certificates.checker.interval import Floats, Interval
from sumformer.certificates.checker.network import Term
from sumformer.certificates.checker.own_token import least_share
from sumformer.certificates.checker.proof import Pass
from sumformer.certificates.checker.reduction_error import refuse_overflow
from sumformer.certificates.checker.tracked import Tracked
from sumformer.certificates.checker.tree_values import Leaf, components
from sumformer.certificates.checker.upward import over
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node


@dataclass(frozen=True)
class Shared:
    """Numerator terms over one denominator term a·b·c·ΠK, all with the same channel and product."""

    numerator: tuple[Term, ...]
    denominator: Term
    kind: str

    @property
    def constant(self) -> Fraction:
        return self.denominator.polynomial[0][1]


def shared(numerator: tuple[Term, ...], denominator: tuple[Term, ...], kinds: tuple[str, str]) -> Shared | None:
    """The pattern, if it is one."""
    if len(denominator) != 1 or not numerator or kinds[0] != kinds[1]:
        return None
    (below,) = denominator
    if len(below.polynomial) != 1 or any(below.polynomial[0][0]) or not below.polynomial[0][1]:
        return None
    if any((t.channel, t.product) != (below.channel, below.product) for t in numerator):
        return None
    return Shared(numerator, below, kinds[0])


def quotient(p: Pass, q: Shared, leaf: Leaf[Tracked]) -> Tracked | None:
    """Value and error of the quotient, or None where b or Σ b K may vanish or its relative error is not below 1/2."""
    below = q.denominator
    channel = p.channels[below.channel]
    b_least, b_most = float(channel.value.mignitude.min()), float(channel.value.magnitude.max())
    one_sign = bool((channel.value.lo > 0).all() or (channel.value.hi < 0).all())
    known = _mean_and_deviation(p, q, b_most) if one_sign else None
    if known is None:
        return None
    kernel, deviation, mass = known
    own = [_own(p, term, leaf) for term in q.numerator]
    under = _own(p, below, leaf)
    ratios = [_ratio(p, t, o, below, under) for t, o in zip(q.numerator, own, strict=True)]
    if bool((under.error > 0.9 * under.value.mignitude).any()) or not bool((under.value.mignitude > 0).all()):
        return None
    g, spread = (_weighted(p, q, ratios, constant) for constant in (True, False))
    diameter = np.nextafter(spread.hi - spread.lo, np.inf)
    error = deviation * diameter
    for terms in (q.numerator, (below,)):  # the computed sums themselves, which the quotient alone does not show
        refuse_overflow(p, q.kind, terms, leaf)
    return _with_errors(p, q, _Sizes(b_least, b_most, kernel, mass, own, under, ratios), g, error)


@dataclass(frozen=True)
class _Sizes:
    b_least: float
    b_most: float
    kernel: Floats  # a lower bound of Σ b K̃/Σ b on the cells of x
    mass: Floats  # an upper bound of Σ b |K̃|/Σ b K̃: how far means with weights b K̃ may leave the range of a value
    own: list[Tracked]
    under: Tracked
    ratios: list[Interval]


def _with_errors(p: Pass, q: Shared, s: _Sizes, g: Interval, error: Floats) -> Tracked:
    """Errors of own factors, rounding: (κ_num + sup|S|·κ_den)/(1 − κ_den), relative to |a c| Σ b K̃; |S| ≤ mass·sup|g|.

    For …_others the sums computed are over all tokens less the own one: rounding is relative to Σ_all b + b_own, and
    (Σ_all b)/(Σ_others b) ≤ 1 + B, b_own/(Σ_others b) ≤ B with B = b_max/((n − 1) b_min); likewise for b K̃ with B_K.
    """
    a, tokens, below = p.arithmetic, p.setting.tokens, q.denominator
    channel = p.channels[below.channel]
    relative = float((channel.error / channel.value.mignitude).max())
    B, B_K = 0.0, np.zeros(())
    if q.kind.endswith("_others"):
        B = s.b_most / ((tokens.minimum - 1) * s.b_least)
        most = p.setting.cells.max_over_y(p.kernel_size(below.product) + p.kernel_error(below.product))
        B_K = B * most / s.kernel
    c, a_least = abs(float(q.constant)), s.under.value.mignitude

    def sums(term: Term) -> Floats:
        """The rounding of the sums of this term, relative to Σ b K̃."""
        norm = norm_of(term.polynomial)
        if p.rounding.overflows(below.product, norm, 2 * s.b_most):
            raise Unproved("rounding: the sums over tokens may overflow")
        all_of_them = p.rounding.series(term, 1.0, relative)
        alone = p.rounding.series(term, 1.0, relative, own=True) if B else 0.0
        # `series` adds its underflow for |b| = 1; scaled by 1 + 1/b_min it covers the true b
        lost = p.rounding.underflow(below.product, norm, s.b_most, width_of(term.polynomial)) * (1 + 1 / s.b_least)
        return over((1 + B) * all_of_them + B * alone + lost, s.kernel)

    # products a_t V_t and their sums may underflow: relative to |a c| Σ b K̃ as it is, whatever a_t is
    tiny = over((8 + 2 * len(q.numerator)) * a.tiny, a_least, c, s.b_least, s.kernel)
    counting = 4 * a.count_roundings(tokens.maximum)
    gamma, steps = a.gamma(4 + counting), a.gamma(len(q.numerator) + 4 + counting)
    own_error = over(s.under.error, a_least)
    below_sums = over(sums(below), c)
    kappa = own_error + (1 + own_error) * (below_sums + gamma * (1 + 2 * B_K + below_sums)) + tiny
    above = tiny
    for term, own, ratio in zip(q.numerator, s.own, s.ratios, strict=True):
        size = p.setting.cells.polynomial(term.polynomial).magnitude.max() * s.mass
        weight, drift = ratio.magnitude, over(own.error, a_least, c)
        part = sums(term)  # weight = |a_t/(a c)|
        above = above + drift * size + (weight + drift) * (part + steps * (size * (1 + 2 * B_K) + part))
    if not bool((kappa < 0.5).all()):
        raise Unproved("rounding: the denominator of a quotient is lost in rounding")
    return p.ops.rounded(g, error + (above + g.magnitude * s.mass * kappa) / (1 - kappa))


def _mean_and_deviation(p: Pass, q: Shared, b_most: float) -> tuple[Floats, Floats, Floats] | None:
    """≤ Σ b K̃/Σ b, ≥ |S − f|/diam_y(g) and ≥ Σ b |K̃|/Σ b K̃, on the cells of x: by K_min, or by the own token."""
    term, found, one = q.denominator, [], np.ones(())
    kernels = [p.setting.kernels[g] for g in p.setting.net.products[term.product].kernels]
    eta: Floats | None = None
    if all(bool((k.lo > 0).all()) for k in kernels):
        least, share = _least_and_eta(p, term.product)
        eta = share if bool((share < 0.5).all()) else None
    if eta is not None:
        found.append((least * (1 - eta), eta / (1 - eta) / 2, one))
    if p.setting.own_token and q.kind in ("mean", "sum") and all(bool((k.lo >= 0).all()) for k in kernels):
        kappa, error = least_share(p, term, b_most), p.setting.cells.max_over_y(p.kernel_error(term.product))
        if eta is not None:  # K̃ ≥ (1 − η) K
            found.append((kappa * (1 - eta), eta / (1 - eta) / 2, one))
        if bool((error < 0.5 * kappa).all()):
            found.append((kappa - error, error / (kappa - error), (kappa + error) / (kappa - error)))
    if not found:
        return None
    means, deviations, masses = zip(*found, strict=True)
    return reduce(np.maximum, means), reduce(np.minimum, deviations), reduce(np.minimum, masses)


def _least_and_eta(p: Pass, product: int) -> tuple[Floats, Floats]:
    """min_y ΠK and η = sup_y |K̃ − K|/K ≤ Π(1 + e_g/K_g) − 1 + left out/ΠK, on the cells of x."""
    low, eta = np.ones(()), np.zeros(())
    for g in p.setting.net.products[product].kernels:
        part = np.minimum(over(p.kernel_errors[g], p.setting.kernels[g].lo), p.kernel_share(g))
        low, eta = low * p.setting.kernels[g].lo, eta + part + eta * part
    eta = eta + over(p.left_out[product], low)
    least: Floats = -p.setting.cells.max_over_y(-np.asarray(low))
    return least * (1 - 1e-12), p.setting.cells.max_over_y(eta)


def _own(p: Pass, term: Term, leaf: Leaf[Tracked]) -> Tracked:
    value = components(term.own, p.ops, leaf)[0]
    return Tracked(p.setting.cells.full(value.value), p.setting.cells.spread(value.error))


def _weighted(p: Pass, q: Shared, ratios: list[Interval], constant: bool) -> Interval:
    """The hull over y of g = Σ_t (a_t/(a c)) p_t; without constants its width is still diam_y(g)."""
    exact, cells = p.ops.exact, p.setting.cells
    parts = [
        exact.mul(ratio, cells.polynomial(t.polynomial, constant=constant))
        for t, ratio in zip(q.numerator, ratios, strict=True)
    ]
    return cells.over_y(exact.total(parts))


def _ratio(p: Pass, term: Term, own: Tracked, below: Term, under: Tracked) -> Interval:
    """a_t/(a c): common factors cancelled exactly where what is left is a polynomial of x, else by intervals."""
    exact, c = p.ops.exact, below.polynomial[0][1]
    simple = _cancelled(term.own, below.own)
    if simple is not None:
        value = _evaluate(simple[0], simple[1], p)
        return p.setting.cells.full(exact.div(value, exact.const(c)))
    return exact.div(exact.div(own.value, under.value), exact.const(c))


def _cancelled(above: Node, below: Node) -> tuple[Form, CanonicalForms] | None:
    forms = CanonicalForms()
    try:
        top, bottom = forms.of(above)[0], forms.of(below)[0]
        if not bottom:
            return None
        scale = _multiple(top, bottom)
        if scale is not None:
            return forms.const(scale), forms
        if len(bottom) > 1:
            return None
        ratio = forms.mul(top, forms.inverse(bottom))
    except Unproved:
        return None
    key = forms.evaluator()
    plain = all(
        not exponent and all(power > 0 and _is_own_coordinate(key(atom)) for atom, power in powers)
        for powers, exponent in ratio
    )
    return (ratio, forms) if plain else None


def _multiple(top: Form, bottom: Form) -> Fraction | None:
    """top = scale · bottom, if it is."""
    if top.keys() != bottom.keys():
        return None
    scales = {top[m] / bottom[m] for m in top}
    return scales.pop() if len(scales) == 1 else None


def _is_own_coordinate(key: object) -> bool:
    return isinstance(key, tuple) and key[0] == "x"


def _evaluate(form: Form, forms: CanonicalForms, p: Pass) -> Interval:
    exact, key = p.ops.exact, forms.evaluator()
    out = exact.const(Fraction(0))
    for (powers, _), coefficient in form.items():
        value = exact.const(coefficient)
        for atom, power in powers:
            coordinate: Any = key(atom)  # ("x", c)
            value = exact.mul(value, exact.power(p.setting.x[coordinate[1]], power))
        out = exact.add(out, value)
    return out

"""V_t = mean_k b(x_k) p_t(v_k) K̃(x, x_k) over common atoms, K̃ exactly the stored coefficients; and where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as cartesian

import numpy as np
from flint import fmpq

from sumformer.certificates.checker.bound import Evaluation
from sumformer.certificates.checker.compiled.atoms import UP, Terms, add, rational, scale
from sumformer.certificates.checker.compiled.element import FLOOR, Element, between, moderate, widened
from sumformer.certificates.checker.compiled.forms import INTERVALS, Forms
from sumformer.certificates.checker.features import norm_of
from sumformer.certificates.checker.interval import Floats, Interval
from sumformer.certificates.checker.network import Network, Term, shifted
from sumformer.certificates.checker.proof import Pass
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.tree import Reduce, Token

Place = tuple[Reduce, int]


@dataclass(frozen=True)
class Series:
    """The sums of one network; `passes` know its kernels on cells."""

    net: Network
    weights: tuple[Floats, ...]
    passes: tuple[Pass, ...]
    forms: Forms

    def coordinate(self, c: int) -> Element:
        """x_c = centre + radius·u_c."""
        u = self.forms.chebyshev(tuple(int(k == c) for k in range(self.net.d)))
        return self.forms.add(self.forms.const(self.net.centre[c]), self.forms.scaled(u, self.net.radius[c]))

    @cached_property
    def count(self) -> int | None:
        low, high = (
            min(p.setting.tokens.minimum for p in self.passes),
            max(p.setting.tokens.maximum for p in self.passes),
        )
        return low if low == high else None

    def series(self, term: Term, others: bool) -> Element:
        """V_t = Σ_α T_α(u) Σ_β A_{αβ} mean(b T_β p_t), for the others less 1/n of the own summand."""
        channel = self._channel(term.channel)
        product = self.net.products[term.product]
        share = Fraction(1, self.count) if others and self.count else Fraction(0)
        if others and not share:
            raise Unproved("identity: leaving out the own token needs the number of tokens")
        columns: dict[tuple[int, ...], Terms] = {}  # β ↦ mean(b T_β p) − share · b T_β p
        for beta in product.support:
            column: Terms = {}
            for index, part in shifted(beta, term.polynomial).items():
                column = add(column, scale(self._feature(term.channel, channel, index, share), rational(part)))
            columns[beta] = column
        out: Terms = {}
        mass = 0.0
        for alpha, row in self._rows(term.product):
            mass += sum(abs(float(weight)) for weight in row)
            inner: Terms = {}
            for beta, weight in zip(product.support, row, strict=True):
                if weight:
                    for m, c in columns[beta].items():
                        value = c * weight
                        inner[m] = inner[m] + value if m in inner else value
            out = add(out, self.forms.atoms.multiply({(alpha, (), 0): fmpq(1)}, inner))
        error = 0.0
        if channel.error:
            error = max(2 * UP * channel.error * moderate(mass) * moderate(norm_of(term.polynomial)), FLOOR)
        return Element(out, error, self._range(term, others))

    def _feature(self, number: int, channel: Element, index: tuple[int, ...], share: Fraction) -> Terms:
        key = (number, index, share)
        if key not in self._features:
            own = self.forms.mul(channel, self.forms.chebyshev(index))
            self._features[key] = add(self.forms.mean(own).terms, scale(own.terms, rational(-share)))
        return self._features[key]

    @cached_property
    def _features(self) -> dict[object, Terms]:
        return {}

    def _channel(self, number: int) -> Element:
        """b(y), as a function of the own token."""
        here = [self.coordinate(c) for c in range(self.net.d)]
        return components(
            self.net.channels[number].factor, self.forms, lambda part: here if isinstance(part, Token) else None
        )[0]

    def _rows(self, number: int) -> Iterator[tuple[tuple[int, ...], list[fmpq]]]:
        """α and [Π_g A_g[α_g, β_g]]_β, exactly."""
        product, d = self.net.products[number], self.net.d
        parts = []
        for g in product.kernels:
            kernel = self.net.kernels[g]
            shape = [n + 1 for n in kernel.y_degrees]
            columns = [
                int(np.ravel_multi_index([beta[c] for c in kernel.coordinates], shape)) for beta in product.support
            ]
            alphas = list(cartesian(*(range(n + 1) for n in kernel.x_degrees)))
            rows = [[rational(float(v)) for v in self.weights[g][i, columns]] for i in range(len(alphas))]
            parts.append((kernel.coordinates, alphas, rows))
        for picks in cartesian(*(range(len(alphas)) for _, alphas, _ in parts)):
            alpha, row = [0] * d, [fmpq(1)] * len(product.support)
            for i, (coordinates, alphas, rows) in zip(picks, parts, strict=True):
                for c, degree in zip(coordinates, alphas[i], strict=True):
                    alpha[c] = degree
                row = [a * b for a, b in zip(row, rows[i], strict=True)]
            yield tuple(alpha), row

    def _range(self, term: Term, others: bool) -> Interval:
        """The hull of b p K̃ over cells, times (n − 1)/n for the others."""
        lows, highs = [], []
        for p in self.passes:
            value = INTERVALS.mul(self.weight_on_cells(p, term), p.setting.cells.polynomial(term.polynomial))
            n = p.setting.tokens
            if others:
                count = between((n.minimum - 1) / n.minimum, (n.maximum - 1) / n.maximum)
                value = INTERVALS.mul(value, widened(count, 1e-15))
            lows.append(float(value.lo.min()))
            highs.append(float(value.hi.max()))
        return between(min(lows), max(highs))

    def weight_on_cells(self, p: Pass, term: Term) -> Interval:
        """b K̃ on the cells."""
        value = p.setting.cells.full(INTERVALS.const(Fraction(1)))
        for g in self.net.products[term.product].kernels:
            value = INTERVALS.mul(value, widened(p.setting.kernels[g], p.kernel_errors[g]))
        value = widened(value, p.left_out[term.product])
        return INTERVALS.mul(value, p.channels[term.channel].value)


def reduction_ranges(passes: tuple[Pass, ...]) -> dict[Place, Interval]:
    """Where S's reductions lie."""
    out: dict[Place, Interval] = {}
    for p in passes:
        evaluation = Evaluation(p)
        evaluation.result()
        for node, values in evaluation.reduced.items():
            for c, v in enumerate(values):
                low, high = float((v.value.lo - v.error).min()), float((v.value.hi + v.error).max())
                known = out.get((node, c), between(low, high))
                hull = between(min(low, float(known.lo)), max(high, float(known.hi)))
                out[node, c] = widened(hull, 1e-300) if v.error.any() else hull  # low and high are then rounded
    return out

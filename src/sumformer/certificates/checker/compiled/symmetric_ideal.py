"""S = Σ_t C_t T_{α_t}(u) Π_i q_{β_i}, q_β = Σ over the others of T_β = (n − 1)·m_β, m_β ∈ [−1, 1] the atoms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum

import numpy as np
from flint import fmpq

from sumformer.certificates.checker.compiled.atoms import Terms, add, rational, scale
from sumformer.certificates.checker.compiled.element import Element, between, widened
from sumformer.certificates.checker.compiled.expression_ideal import CLOSE
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.ledger import Value
from sumformer.certificates.checker.interval import Floats, meet
from sumformer.certificates.checker.symmetric.checking import proved_maxima
from sumformer.certificates.checker.symmetric.claims import constant_failures
from sumformer.certificates.checker.symmetric.dropped import dropped
from sumformer.certificates.checker.symmetric.expansion import expand
from sumformer.certificates.checker.symmetric.files import Constants, Polynomial
from sumformer.certificates.checker.symmetric.node_values import node_values
from sumformer.certificates.checker.symmetric.remainder import remainder
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.target import Target


@dataclass(frozen=True)
class SymmetricIdeal:
    """S over the atoms of `forms`."""

    parts: tuple[float, float]
    net: Polynomial
    weights: Floats
    forms: Forms

    @staticmethod
    def prove(
        f: Target, net: Polynomial, weights: Floats, recorded: Constants, claim: float, forms: Forms
    ) -> SymmetricIdeal:
        with np.errstate(all="ignore"):
            maxima = proved_maxima(f, net, recorded)
            first = remainder(recorded.own, recorded.others, net.m, recorded.rhos, maxima)
            if not first <= claim:
                raise Unproved(f"interpolation remainder: {first:.6g} is more than all that is claimed")
            values = node_values(f.expression, f.box, recorded.own, recorded.others, net.m)
            found = dropped(values, expand(net, weights), recorded, net.m)
            wrong = constant_failures(net, weights, recorded, maxima, found)
        if wrong:
            raise Unproved(f"ideal: {'; '.join(wrong)}")
        return SymmetricIdeal((first, found.rest + found.moved), net, weights, forms)

    def outputs(self) -> list[list[Element]]:
        nodes, depth = [()], [0]
        for parent, factor in self.net.products.tolist():
            nodes.append((*nodes[parent], factor))
            depth.append(depth[parent] + 1)
        numbers = [self._name(i).terms for i in range(len(self.net.features))]
        out = []
        for w in range(self.net.width):
            terms: Terms = {}
            for (a, p), row in zip(self.net.terms.tolist(), self.weights, strict=True):
                powers: dict[int, int] = {}
                for factor in nodes[p]:
                    ((_, ((number, _),), _),) = numbers[factor]
                    powers[number] = powers.get(number, 0) + 1
                key = (tuple(self.net.own[a].tolist()), tuple(sorted(powers.items())), 0)
                value = rational(float(row[w])) * fmpq(self.net.m) ** depth[p]
                terms = terms if not value else _put(terms, key, value)
            size = fsum(abs(float(c)) for c in terms.values()) * (1 + 1e-9)
            out.append(Element(terms, 0.0, between(-size, size)))
        return [out]

    def _name(self, i: int) -> Element:
        return self.forms.named(("others", tuple(self.net.features[i].tolist())), between(-1.0, 1.0))

    def refine(self, value: Value, found: Element) -> Element:
        """m_β = (n·mean T_β − T_β(u))/(n − 1) is the mean of T_β over the others."""
        n = self.net.tokens
        if value.op != "sum" or "others" not in value.because or n < 2:
            return found
        for i, beta in enumerate(self.net.features.tolist()):
            T = self.forms.chebyshev(tuple(beta))
            exact = add(scale(self.forms.mean(T).terms, rational(Fraction(n, n - 1))), scale(T.terms, fmpq(-1, n - 1)))
            apart = self.forms.atoms.distance(found.terms, exact)
            if apart <= CLOSE:
                error = found.error + apart
                return Element(self._name(i).terms, error, meet(found.range, widened(between(-1.0, 1.0), error)))
        raise Unproved(f"identity: {value.name} is not shown to be a mean over the others")


def _put(terms: Terms, key: tuple[tuple[int, ...], tuple[tuple[int, int], ...], int], value: fmpq) -> Terms:
    terms[key] = terms[key] + value if key in terms else value
    return terms

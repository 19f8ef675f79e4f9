"""Step 1: body_c(x, y) = Σ_t a_t(x)·b_t(y)·p_t(v)·Π_g K_g(x, y) for every reduction and coordinate, exactly."""

from __future__ import annotations

from fractions import Fraction

from sumformer.certificates.checker.canonical import CanonicalForms, Form
from sumformer.certificates.checker.network import Network, Polynomial, Term
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.printing import to_source

Tables = dict[int, list[Form]]
"""For each coordinate T_0, T_1, … of it, in the forms of one reduction."""


def identity_failures(net: Network) -> list[str]:
    """One message per reduction whose decomposition is not proved."""
    out = []
    for r, reduction in enumerate(net.reductions):
        name = f"reduction {r} ({to_source(reduction.node)[:60]})"
        try:
            forms, tables = CanonicalForms(), Tables()
            bodies = forms.of(reduction.node.body)
            for c, (body, terms) in enumerate(zip(bodies, reduction.components, strict=True)):
                claimed = forms.total([_term(term, net, forms, tables) for term in terms])
                if forms.sub(body, claimed):
                    out.append(f"identity: coordinate {c} of {name} is not the sum of its terms")
        except Unproved as why:
            out.append(f"identity: {name}: {why}")
    return out


def _term(term: Term, net: Network, forms: CanonicalForms, tables: Tables) -> Form:
    out = forms.mul(forms.of(term.own)[0], forms.of(net.channels[term.channel].factor)[0])
    out = forms.mul(out, polynomial_form(term.polynomial, net, forms, tables))
    for g in net.products[term.product].kernels:
        out = forms.mul(out, forms.of(net.kernels[g].expression)[0])
    return out


def polynomial_form(polynomial: Polynomial, net: Network, forms: CanonicalForms, tables: Tables) -> Form:
    """Σ_γ c_γ Π_c T_{γ_c}(v_c), v_c = (y_c − centre_c)/radius_c, in powers of y."""
    out: Form = {}
    for gamma, coefficient in polynomial:
        value = forms.const(coefficient)
        for c, degree in enumerate(gamma):
            if degree:
                value = forms.mul(value, _chebyshev(c, degree, net, forms, tables))
        out = forms.add(out, value)
    return out


def _chebyshev(c: int, degree: int, net: Network, forms: CanonicalForms, tables: Tables) -> Form:
    """T_degree(v_c), by recurrence from those made before."""
    if c not in tables:
        moved = forms.sub(forms.atom(("y", c)), forms.const(net.centre[c]))
        tables[c] = [forms.const(Fraction(1)), forms.mul(forms.const(1 / net.radius[c]), moved)]
    table = tables[c]
    if len(table) <= degree:
        twice = forms.mul(forms.const(Fraction(2)), table[1])
        while len(table) <= degree:
            table.append(forms.sub(forms.mul(twice, table[-1]), table[-2]))
    return table[degree]

"""Step 1: body_c(x, y) = Σ_t a_t(x)·b_t(y)·p_t(v)·Π_g K_g(x, y) for every reduction and coordinate, exactly."""

from __future__ import annotations

from fractions import Fraction

from sumformer.certificates.checker.canonical import CanonicalForms, Form
from sumformer.certificates.checker.network import Network, Polynomial, Term
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.printing import to_source


def identity_failures(net: Network) -> list[str]:
    """One message per reduction whose decomposition is not proved."""
    out = []
    for r, reduction in enumerate(net.reductions):
        name = f"reduction {r} ({to_source(reduction.node)[:60]})"
        try:
            forms = CanonicalForms()
            bodies = forms.of(reduction.node.body)
            for c, (body, terms) in enumerate(zip(bodies, reduction.components, strict=True)):
                claimed = forms.total([_term(term, net, forms) for term in terms])
                if forms.sub(body, claimed):
                    out.append(f"identity: coordinate {c} of {name} is not the sum of its terms")
        except Unproved as why:
            out.append(f"identity: {name}: {why}")
    return out


def _term(term: Term, net: Network, forms: CanonicalForms) -> Form:
    out = forms.mul(forms.of(term.own)[0], forms.of(net.channels[term.channel].factor)[0])
    out = forms.mul(out, polynomial_form(term.polynomial, net, forms))
    for g in net.products[term.product].kernels:
        out = forms.mul(out, forms.of(net.kernels[g].expression)[0])
    return out


def polynomial_form(polynomial: Polynomial, net: Network, forms: CanonicalForms) -> Form:
    """Σ_γ c_γ Π_c T_{γ_c}(v_c), v_c = (y_c − centre_c)/radius_c, in powers of y."""
    out: Form = {}
    for gamma, coefficient in polynomial:
        value = forms.const(coefficient)
        for c, degree in enumerate(gamma):
            if degree:
                moved = forms.sub(forms.atom(("y", c)), forms.const(net.centre[c]))
                v = forms.mul(forms.const(1 / net.radius[c]), moved)
                value = forms.mul(value, _chebyshev(degree, v, forms))
        out = forms.add(out, value)
    return out


def _chebyshev(degree: int, v: Form, forms: CanonicalForms) -> Form:
    before, now = forms.const(Fraction(1)), v
    twice = forms.mul(forms.const(Fraction(2)), v)
    for _ in range(degree - 1):
        before, now = now, forms.sub(forms.mul(twice, now), before)
    return now

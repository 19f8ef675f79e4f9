"""Where a certificate of a `SymmetricSumformer` contradicts its network, or what is found from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sumformer.certificates.certificate import OF_A_SUMFORMER, Certificate
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.claims import NAMES
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.symmetric.dropped import Dropped
from sumformer.certificates.checker.symmetric.files import Constants, Polynomial, orbit_count
from sumformer.certificates.checker.symmetric.remainder import remainder
from sumformer.certificates.checker.verdict import assumption_failures, key_failures
from sumformer.targets.target import Target

TOLERANCE = dict(zip(NAMES, (1.6, 1.02, 2.0), strict=True))  # found over claimed: M and rounding may differ
KEYS = {
    "own_degrees",
    "other_degrees",
    "ellipses",
    "remainder",
    "orbits",
    "kept",
    "terms",
    "grid",
    "dropped",
    "coefficients",
}


def field_failures(c: Certificate, f: Target, net: Polynomial) -> list[str]:
    """Certificate, target and configuration must speak of one network."""
    out = []
    if (c.architecture, c.norm, c.route) != ("sumformer", "sup", "symmetric"):
        out.append("architecture, norm, route: expected a sumformer in the sup norm by route symmetric")
    if not f.tokens.exact or f.tokens.maximum != net.tokens:
        out.append(f"tokens: the certificate says {c.tokens}, the network is made for {net.tokens}")
    if f.d != net.d or f.width != net.width:
        out.append(f"d, width: the target's are {f.d}, {f.width}, the network's {net.d}, {net.width}")
    elif net.centre != f.box.centre or net.radius != f.box.radius:
        out.append("box: the network's centre and radius are not those of the certificate's box")
    if net.arithmetic != c.arithmetic:
        out.append(f"arithmetic: the certificate says {c.arithmetic!r}, the network {net.arithmetic!r}")
    if len(net.features) != c.latent_dimension:
        out.append(f"latent_dimension: {c.latent_dimension} is claimed, the network has {len(net.features)}")
    out += key_failures(c.constants, KEYS, {"positions"})
    return out + assumption_failures(c, *OF_A_SUMFORMER, functions=False)


def constant_failures(
    net: Polynomial, weights: Floats, recorded: Constants, maxima: Sequence[float], found: Dropped
) -> list[str]:
    """Recorded constants that are refuted, or that do not follow from each other; only ρ, N and the grid are used."""
    out = []
    for v, (mine, claimed) in enumerate(zip(maxima, recorded.maxima, strict=True)):
        if not mine <= 1.5 * claimed:
            out.append(f"constants: variable {v}: M ≤ {claimed:.6g} is recorded, {mine:.6g} is proved")
    formula = remainder(recorded.own, recorded.others, net.m, recorded.rhos, recorded.maxima)
    if not 0.999 * formula <= recorded.remainder <= 1.001 * formula:
        out.append(f"constants: the remainder {recorded.remainder:.6g} is not that of its ρ, M and degrees")
    orbits = orbit_count(recorded.own, recorded.others, net.m)
    for name, mine, claimed in (("orbits", orbits, recorded.orbits), ("terms", len(net.terms), recorded.terms)):
        if mine != claimed:
            out.append(f"constants: {name} is recorded as {claimed}, found {mine}")
    few, many = found.kept
    if not few <= recorded.kept <= many:
        out.append(f"constants: kept is recorded as {recorded.kept}, found {few}{f' to {many}' if many > few else ''}")
    room = 16 * found.rounding + 1e-7 * (1 + found.size)  # too large is harmless: the bound does not use it
    if not found.rest / 1.05 - 16 * found.rounding <= recorded.dropped <= 1.5 * found.rest + room:
        out.append(f"constants: dropped is recorded as {recorded.dropped:.6g}, found {found.rest:.6g}")
    most = 4096 * _coefficient_rounding(net, weights)
    mine = 8 * (many + 2) * found.rounding  # of each orbit, in this interpolant
    if not found.moved / 1.05 - most - mine <= recorded.coefficients <= found.moved + most:
        out.append(f"constants: coefficients is recorded as {recorded.coefficients:.6g}, found {found.moved:.6g}")
    return out


def _coefficient_rounding(net: Polynomial, weights: Floats) -> float:
    """Σ_t |C_t| m^{factors} u: what one rounding of each coefficient may move."""
    sizes = [1.0]
    for parent, _ in net.products.tolist():
        sizes.append(sizes[parent] * net.m)
    each = np.abs(weights).max(axis=1, initial=0.0) * np.array(sizes)[net.terms[:, 1]]
    return float(each.sum()) * Arithmetic.named(net.arithmetic).u


def share_failures(c: Certificate, recorded: Constants, parts: Sequence[float], lost: float) -> list[str]:
    """Terms that are missing, below what is found, or that do not follow from the constants; `lost`: in finding it."""
    out = []
    claimed = {term.name: term for term in c.terms}
    own = dict(zip(NAMES, (recorded.remainder, recorded.dropped + recorded.coefficients, 0.0), strict=True))
    for name, part in zip(NAMES, parts, strict=True):
        term = claimed.get(name)
        if term is None:
            out.append(f"term {name!r}: it is missing")
        elif not part <= TOLERANCE[name] * term.bound + lost:
            out.append(f"term {name!r}: {term.bound:.6g} is claimed, {part:.6g} found")
        elif own[name] and not own[name] <= term.bound <= 1.2 * own[name]:
            out.append(f"term {name!r}: {term.bound:.6g} is claimed, its constants say {own[name]:.6g}")
        elif not own[name] and not term.bound <= 64 * part + 1e-9 * c.total:
            out.append(f"term {name!r}: {term.bound:.6g} is claimed, {part:.6g} found")
    return out

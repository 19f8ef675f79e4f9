"""Where a certificate of a `GridSumformer` contradicts its network or itself."""

from __future__ import annotations

import math
from fractions import Fraction

from sumformer.certificates.certificate import OF_A_SUMFORMER, Certificate
from sumformer.certificates.checker.grid.tables import Network
from sumformer.certificates.checker.json_values import is_number, same
from sumformer.certificates.checker.verdict import assumption_failures, key_failures
from sumformer.targets.target import Target
from sumformer.targets.walk import has_function

NAMES = ("modulus of continuity at the cells", "rounding")
KINDS = dict(zip(NAMES, ("enclosed", "rounding"), strict=True))
TOLERANCE = dict(zip(NAMES, (1.02, 2.0), strict=True))  # found over claimed: rounding may be counted in other ways
_KEYS = {"cells", "code", "lipschitz", "cell_radius_over_half_side"}


def field_failures(c: Certificate, f: Target, net: Network) -> list[str]:
    """Certificate, target and configuration must speak of one network, whose code can count its tokens."""
    out = []
    if (c.architecture, c.norm, c.route) != ("sumformer", "sup", "grid"):
        out.append("architecture, norm, route: expected a sumformer in the sup norm by route grid")
    if net.d != f.d or net.expression != f.expression:
        out.append("target: the network's expression is not the certificate's target")
    if f.tokens.symbolic or net.n != f.tokens.maximum:
        out.append(f"tokens: the certificate says {c.tokens}, the network's code counts up to {net.n}")
    if net.arithmetic != c.arithmetic:
        out.append(f"arithmetic: the certificate says {c.arithmetic!r}, the network {net.arithmetic!r}")
    dimension = net.latent_dimension
    if dimension is None or (net.code == "syndrome" and not f.tokens.exact):
        out.append(f"code: {net.code!r} does not tell the multisets of up to {net.n} tokens apart, exactly")
    elif dimension != c.latent_dimension:
        out.append(f"latent_dimension: {c.latent_dimension} is claimed, the code has {dimension}")
    names = ("lipschitz", "lipschitz_attained", "cell_radius_over_half_side")
    if not all(is_number(v) and 0 <= v < math.inf for v in (c.constants.get(k, 0.0) for k in names)):
        out.append(f"constants: expected numbers ≥ 0 in {', '.join(names)}")
    assumptions = assumption_failures(c, *OF_A_SUMFORMER, functions=has_function(net.expression))
    return out + key_failures(c.constants, _KEYS, {"positions"}) + assumptions


def constant_failures(c: Certificate, net: Network, ratio: Fraction) -> list[str]:
    """Recorded constants that are not those of the network, or from which the term does not follow."""
    out, k = [], c.constants
    if not same(k.get("cells"), list(net.cells)) or net.code != k.get("code"):
        out.append("constants: cells and code are not the network's")
    if not abs(k["cell_radius_over_half_side"] - float(ratio)) <= 1e-12 * float(ratio):
        got = k["cell_radius_over_half_side"]
        out.append(f"constants: cell_radius_over_half_side is recorded as {got}, found {float(ratio)}")
    if not k.get("lipschitz_attained", 0.0) <= k["lipschitz"]:
        out.append("constants: more than the Lipschitz constant is attained")
    term = {t.name: t.bound for t in c.terms}.get(NAMES[0], 0.0)
    claimed = k["lipschitz"] * k["cell_radius_over_half_side"]
    if not claimed * (1 - 1e-9) <= term <= 1.2 * claimed:
        out.append(f"term {NAMES[0]!r}: {term:.6g} is claimed, its constants say {claimed:.6g}")
    return out

"""Where a certificate of a `LookUpTransformer` contradicts its network or itself."""

from __future__ import annotations

import math
from fractions import Fraction

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.compiled.head import ARCHITECTURES
from sumformer.certificates.checker.look_up.files import Network
from sumformer.certificates.checker.look_up.grid import Cells
from sumformer.certificates.checker.verdict import assumption_failures
from sumformer.targets.target import Target

NAMES = ("modulus of continuity at the cells", "rounding", "ramps")
KINDS = dict(zip(NAMES, ("enclosed", "rounding", "proved"), strict=True))
_KEYS = {"why", "activation", "cells", "entries", "code", "lipschitz", "lipschitz_attained"}
_RELU = {"p", "sup_off_ramps", "ramp_share", "ramps", "layers"}


def field_failures(c: Certificate, f: Target, net: Network) -> list[str]:
    """Certificate, target and configuration must speak of one network, in one norm."""
    out = []
    if c.route != "grid" or ARCHITECTURES.get(str(net.attention.get("type"))) != c.architecture:
        out.append("route, architecture: expected route grid, and the architecture of the network's attention")
    if net.d != f.d or len(net.out) != f.width:
        out.append("target: its widths are not the network's")
    if not f.tokens.exact or net.tokens != f.tokens.maximum:
        out.append(f"tokens: the certificate says {c.tokens}, the network has {net.tokens}")
    if c.arithmetic != "float64" or c.latent_dimension != 1:
        out.append("arithmetic, latent_dimension: not those of the network")
    if c.norm != ("sup" if net.activation == "step" else _norm(c)):
        out.append(f"norm: {c.norm!r} is not sup (steps) or d_p for the recorded p (ReLU)")
    if c.constants.keys() != (_KEYS if net.activation == "step" else _KEYS | _RELU):
        out.append("constants: some are missing, or unknown")
    elif not 0 <= number(c, "lipschitz_attained") <= number(c, "lipschitz") < math.inf:
        out.append("constants: expected 0 ≤ lipschitz_attained ≤ lipschitz")
    return out + assumption_failures(c, "exp(0) = 1", "IEEE", "lie in the box")


def constant_failures(c: Certificate, net: Network, cells: Cells, entries: int, largest: float) -> list[str]:
    """Recorded constants that are not those of the network."""
    k = c.constants
    found = {"activation": net.activation, "entries": entries, "code": largest}
    out = [
        f"constants: {name} is recorded as {k[name]!r}, found {value!r}"
        for name, value in found.items()
        if k[name] != value
    ]
    if any(count != k["cells"] for count in cells.counts):
        out.append(f"constants: {k['cells']!r} cells along each side are recorded, found {cells.counts}")
    if net.activation == "relu":
        widths = k["ramps"] if isinstance(k["ramps"], list) and len(k["ramps"]) == net.d else [math.nan] * net.d
        same = all(Fraction(w) == r for w, ramps in zip(widths, cells.ramps, strict=True) for r in ramps if w == w)
        if not same or any(w != w for w in widths) or k["layers"] != []:
            out.append("constants: the ramps are not as wide as recorded")
        if not float(cells.ramp_share(net.tokens)) <= number(c, "ramp_share") * (1 + 1e-12) <= 1 + 1e-9:
            out.append("constants: ramps take a larger share of the inputs than recorded")
    return out


def number(c: Certificate, name: str) -> float:
    """A recorded number, NaN where it is none."""
    value = c.constants.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _norm(c: Certificate) -> str | None:
    p = number(c, "p")
    return "d_" + repr(p).removesuffix(".0") if 1 <= p < 1e6 else None

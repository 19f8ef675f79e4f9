"""Where a certificate of a `LookUpTransformer` contradicts its network or itself."""

from __future__ import annotations

import math
from fractions import Fraction

from sumformer.certificates.certificate import OF_A_COMPILED_NETWORK, Certificate
from sumformer.certificates.checker.compiled.head import ARCHITECTURES
from sumformer.certificates.checker.integral_norm import root, volume_above
from sumformer.certificates.checker.json_values import is_number
from sumformer.certificates.checker.look_up.files import Network
from sumformer.certificates.checker.look_up.grid import Cells
from sumformer.certificates.checker.verdict import assumption_failures, claims, key_failures
from sumformer.targets.target import Target

NAMES = ("modulus of continuity at the cells", "rounding", "ramps")
KINDS = dict(zip(NAMES, ("enclosed", "rounding", "proved"), strict=True))
_KEYS = {"activation", "cells", "entries", "code", "lipschitz"}
TINY = 1e-300  # rounded up from 0; the bound does not use these
_RELU = {"p", "sup_off_ramps", "ramp_share", "ramps"}


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
    out += key_failures(c.constants, _KEYS if net.activation == "step" else _KEYS | _RELU)
    if not 0 <= number(c, "lipschitz_attained", 0.0) <= number(c, "lipschitz") < math.inf:
        out.append("constants: expected 0 ≤ lipschitz_attained ≤ lipschitz")
    return out + assumption_failures(c, *OF_A_COMPILED_NETWORK)


def constant_failures(c: Certificate, f: Target, net: Network, cells: Cells, entries: int, largest: float) -> list[str]:
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
        if not same or any(w != w for w in widths):
            out.append("constants: the ramps are not as wide as recorded")
        share = float(cells.ramp_share(net.tokens))
        if not share <= number(c, "ramp_share") * (1 + 1e-12) <= min(1.0, share * (1 + 1e-5)) + 1e-9:
            out.append(f"constants: ramp_share is recorded as {k['ramp_share']!r}, found {share:.6g}")
    return out + _sup_failures(c, f, cells)


def _sup_failures(c: Certificate, f: Target, cells: Cells) -> list[str]:
    """The terms, times (V n width)^{1/p} in d_p, follow from lipschitz; with rounding they are sup_off_ramps."""
    out, claimed, p = [], claims(c), number(c, "p", math.inf)
    n = f.tokens.maximum
    scale = 1.0 if c.norm == "sup" else root(volume_above(f.box.volume**n), n * f.width, p)
    term = claimed.get(NAMES[0], 0.0)
    ratio = max(r / h for r, h in zip(cells.radii(), f.box.radius, strict=True))
    modulus = number(c, "lipschitz") * float(ratio) * scale
    if not modulus * (1 - 1e-6) <= term <= 1.2 * modulus + TINY:
        out.append(f"term {NAMES[0]!r}: {term:.6g} is claimed, its constants say {modulus:.6g}")
    off = number(c, "sup_off_ramps", 0.0) * scale
    if c.norm != "sup" and not abs(off - term - claimed.get(NAMES[1], 0.0)) <= 1e-6 * off + TINY:
        out.append("constants: sup_off_ramps is not what the terms say")
    return out


def number(c: Certificate, name: str, default: float = math.nan) -> float:
    """A recorded number, NaN where it is none."""
    value = c.constants.get(name, default)
    return float(value) if is_number(value) else math.nan


def _norm(c: Certificate) -> str | None:
    p = number(c, "p")
    return "d_" + repr(p).removesuffix(".0") if 1 <= p < 1e6 else None

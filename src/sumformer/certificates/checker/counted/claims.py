"""Where a certificate of a `CellSumformer` contradicts its network or itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from sumformer.certificates.certificate import OF_A_SUMFORMER, Certificate
from sumformer.certificates.checker.counted.network import Network
from sumformer.certificates.checker.json_values import is_number, same
from sumformer.certificates.checker.verdict import assumption_failures, key_failures
from sumformer.targets.homogeneity import cancelled
from sumformer.targets.target import Target
from sumformer.targets.walk import has_function

MAX_TOKENS = 2**30  # counts, and their sums, are exact in float64
ALIKE = Fraction(1, 10**12)
_KEYS = {"cells", "radius"}


def field_failures(c: Certificate, f: Target, net: Network) -> list[str]:
    """Certificate, target and configuration must speak of one network."""
    out = []
    if (c.architecture, c.norm, c.route) != ("sumformer", "sup", "cells"):
        out.append("architecture, norm, route: expected a sumformer in the sup norm by route cells")
    if net.d != f.d or net.expression != cancelled(f.expression):  # means for sums, where n cancels
        out.append("target: the network's expression is not the certificate's target")
    if f.tokens.maximum > MAX_TOKENS:
        out.append(f"tokens: the certificate says {c.tokens}; counts are exact up to {MAX_TOKENS}")
    if net.arithmetic != c.arithmetic or c.arithmetic not in ("float64", "mixed"):
        out.append(
            f"arithmetic: the certificate says {c.arithmetic!r}, the network {net.arithmetic!r}; "
            "expected float64 or mixed in both"
        )
    if c.latent_dimension != net.latent_dimension:
        out.append(f"latent_dimension: {c.latent_dimension} is claimed, the network has {net.latent_dimension} cells")
    assumptions = assumption_failures(c, *OF_A_SUMFORMER, functions=has_function(net.expression))
    return out + key_failures(c.constants, _KEYS) + assumptions


def constant_failures(c: Certificate, net: Network, exact: Sequence[Fraction]) -> list[str]:
    """Recorded constants that are not those of the network; `exact` are the radii of its tables."""
    out = []
    if not same(c.constants.get("cells"), list(net.cells)):
        out.append("constants: cells are not the network's")
    recorded = c.constants.get("radius")
    if not isinstance(recorded, list) or len(recorded) != net.d or not all(map(_is_length, recorded)):
        return [*out, f"constants: expected a list of {net.d} numbers ≥ 0 as radius"]
    for k, (number, r) in enumerate(zip(recorded, exact, strict=True)):
        if abs(Fraction(number) - r) > ALIKE * r:
            out.append(f"constants: radius of coordinate {k} is recorded as {number}, found {float(r)}")
    return out


def _is_length(value: object) -> bool:
    return is_number(value) and 0 <= value < math.inf  # type: ignore[operator]

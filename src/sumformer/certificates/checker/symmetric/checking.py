"""check(directory) for a `SymmetricSumformer`: sup |f − N| ≤ R_N + sup |I_N f − S| + rounding, from the saved files.

0. integrity     hashes; certificate, configuration and weights fit together
1. remainder     every M re-enclosed on the whole ellipse that is recorded for it
2. dropped       I_N f from its values at the nodes, S from the saved coefficients, their difference in orbits
3. rounding      of the network in the stated arithmetic
4. verified      iff nothing failed and the sum ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.claims import KINDS, NAMES
from sumformer.certificates.checker.files import Tensors, read_certificate, read_weights
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.symmetric.claims import constant_failures, field_failures, share_failures
from sumformer.certificates.checker.symmetric.dropped import Dropped, dropped
from sumformer.certificates.checker.symmetric.expansion import expand
from sumformer.certificates.checker.symmetric.files import (
    Constants,
    Polynomial,
    as_matrix,
    read_constants,
    read_polynomial,
    weight_failures,
)
from sumformer.certificates.checker.symmetric.node_values import node_values
from sumformer.certificates.checker.symmetric.remainder import TokenEllipse, remainder
from sumformer.certificates.checker.symmetric.rounding import rounding
from sumformer.certificates.checker.verdict import (
    claims,
    hash_failures,
    proved_verdict,
    sum_above,
    term_failures,
    total_failures,
)
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target

Parts = tuple[float, float, float]
GOAL = 1.02  # M is proved up to this factor of the recorded one


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c = read_certificate(folder)
    net, tensors = read_polynomial(folder), read_weights(folder)
    f, recorded = read_target(folder, c), read_constants(folder, c, net)
    failures = hash_failures(folder, c) + term_failures(c, KINDS)
    broken = field_failures(c, f, net) + weight_failures(tensors, net)
    return proved_verdict(
        c, NAMES, failures + broken, not broken, lambda: _prove(c, f, net, tensors, recorded), start, sum_above
    )


def _prove(
    c: Certificate, f: Target, net: Polynomial, tensors: Tensors, recorded: Constants
) -> tuple[Parts, list[str]]:
    """The three parts of B', ∞ where they are not sought, and what is wrong with the recorded constants and terms."""
    weights = as_matrix(tensors)
    maxima = proved_maxima(f, net, recorded)
    first = remainder(recorded.own, recorded.others, net.m, recorded.rhos, maxima)
    if not first <= c.total:  # the rest would not help
        return (first, math.inf, math.inf), total_failures(c, claims(c), {NAMES[0]: first})
    expansion = expand(net, weights)
    values = node_values(f.expression, f.box, recorded.own, recorded.others, net.m)
    second: Dropped = dropped(values, expansion, recorded, net.m)
    third = rounding(net, weights, second.size)
    parts = (first, second.rest + second.moved, third)
    failures = constant_failures(net, weights, recorded, maxima, second)
    failures += share_failures(c, recorded, parts, second.rounding)
    return parts, failures + total_failures(c, claims(c), dict(zip(NAMES, parts, strict=True)))


def proved_maxima(f: Target, net: Polynomial, recorded: Constants) -> tuple[float, ...]:
    """M of each coordinate of x, then of y where there are others."""
    out = []
    for v, (rho, claimed) in enumerate(zip(recorded.rhos, recorded.maxima, strict=True)):
        mine, coordinate = v < net.d, v % net.d
        ellipse = TokenEllipse(f.expression, f.box, net.tokens, mine, coordinate, rho)
        found = ellipse.maximum(GOAL * claimed)
        if found == math.inf:
            raise Unproved(f"ellipses: f is not shown to be analytic for ρ = {rho} in {ellipse.name}")
        out.append(found)
    return tuple(out)

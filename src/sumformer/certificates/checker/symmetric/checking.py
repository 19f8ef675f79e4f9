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

import numpy as np

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.claims import NAMES, hash_failures, term_failures
from sumformer.certificates.checker.files import read_certificate, read_weights
from sumformer.certificates.checker.interval import ASSUMPTION, Floats
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.symmetric.claims import claim_failures, constant_failures, field_failures
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
    failures = hash_failures(folder, c) + term_failures(c)
    broken = field_failures(c, f, net) + weight_failures(tensors, net)
    parts: Parts = (math.inf, math.inf, math.inf)
    if not broken:
        try:
            with np.errstate(all="ignore"):
                parts, found = _prove(f, net, as_matrix(tensors), recorded, c)
            failures += found
        except Unproved as why:
            failures.append(f"proof: {why}")
        except (ArithmeticError, MemoryError, RecursionError) as error:
            failures.append(f"proof: it cannot be carried out ({type(error).__name__}: {error})")
    failures += broken
    total = math.nextafter(math.fsum(parts), math.inf) if all(map(math.isfinite, parts)) else math.inf
    return Verification(
        verified=not failures and total <= c.total <= c.epsilon,
        bound=total,
        claimed=float(c.total),
        epsilon=float(c.epsilon),
        terms=tuple(zip(NAMES, parts, strict=True)),
        failures=tuple(failures),
        assumptions=(*c.assumptions, ASSUMPTION),
        seconds=time.perf_counter() - start,
    )


def _prove(f: Target, net: Polynomial, weights: Floats, recorded: Constants, c: Certificate) -> tuple[Parts, list[str]]:
    """The three parts of B', and what is wrong with the recorded constants and the claimed terms."""
    maxima = proved_maxima(f, net, recorded)
    first = remainder(recorded.own, recorded.others, net.m, recorded.rhos, maxima)
    if not first <= c.total:  # the rest would not help
        return (first, 0.0, 0.0), [*_too_much(c, (first, 0.0, 0.0))]
    expansion = expand(net, weights)
    values = node_values(f.expression, f.box, recorded.own, recorded.others, net.m)
    second: Dropped = dropped(values, expansion, recorded, net.m)
    third = rounding(net, weights, second.size)
    parts = (first, second.rest + second.moved, third)
    failures = constant_failures(net, weights, recorded, maxima, second) + claim_failures(c, recorded, parts)
    return parts, failures + _too_much(c, parts)


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


def _too_much(c: Certificate, parts: Parts) -> list[str]:
    if math.fsum(parts) <= c.total:
        return []
    claimed = {term.name: term.bound for term in c.terms}
    worst = max(zip(NAMES, parts, strict=True), key=lambda pair: pair[1] - claimed.get(pair[0], 0.0))[0]
    return [f"total: {c.total:.6g} is claimed, {math.fsum(parts):.6g} found; most of it in the {worst}"]

"""check(directory) for a `GridSumformer`: sup |f − N| ≤ (modulus of the others at their cells) + rounding.

0. integrity     hashes; certificate, configuration and tables fit together
1. code          Σ is exact and determines the multiset of the others' cells
2. modulus       r_c from the tables as they are; Σ r_c |∂f/∂x_{j,c}| bounded by interval differentiation on cells
3. rounding      of the formula in the stated arithmetic
4. verified      iff nothing failed and the sum ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.files import Tensors, read_certificate, read_weights
from sumformer.certificates.checker.grid.claims import (
    KINDS,
    NAMES,
    TOLERANCE,
    constant_failures,
    field_failures,
)
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.certificates.checker.grid.rounding import rounding
from sumformer.certificates.checker.grid.tables import Network, place_radius, radius, read_grid, table_failures
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import (
    claim_failures,
    claims,
    hash_failures,
    proved_verdict,
    sum_above,
    term_failures,
)
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target

GOAL = 1.02  # of the recorded constant
COUNTS = 128


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    net, f = read_grid(folder), read_target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c, KINDS)
    broken = field_failures(c, f, net) or table_failures(tensors, net.cells, net.arithmetic, f.box)
    return proved_verdict(c, NAMES, failures + broken, not broken, lambda: _prove(c, f, net, tensors), start, sum_above)


def _prove(c: Certificate, f: Target, net: Network, tensors: Tensors) -> tuple[tuple[float, float], list[str]]:
    free = net.d - (c.constants.get("positions") is True)
    exact = [radius(tensors, k, f.box) if k < free else place_radius(tensors, k, net.n) for k in range(net.d)]
    ratio = max((r / h for r, h in zip(exact[:free], f.box.radius, strict=False)), default=Fraction(0))
    failures = constant_failures(c, net, ratio)
    above = np.array([math.nextafter(float(r), math.inf) if r else 0.0 for r in exact])
    goal = GOAL * float(c.constants["lipschitz"]) * float(ratio)
    counts = range(f.tokens.minimum, f.tokens.maximum + 1)
    if len(counts) > COUNTS:
        raise Unproved(f"tokens: more than {COUNTS} different n")
    modulus = max(Modulus(f.expression, f.box, n, above).bound(goal) for n in counts)
    parts = (modulus, rounding(f, net.arithmetic))
    found = dict(zip(NAMES, parts, strict=True))
    return parts, failures + claim_failures(c, claims(c), found, lambda name, claim: TOLERANCE[name] * claim)

"""check(directory) for a `CellSumformer`: sup |f − N| ≤ (modulus of the reductions at the cells) + rounding.

0. integrity     hashes; certificate, configuration and tables fit together
1. rounding      of the formula at the centres, each value taken as often as its cell is counted
2. modulus       r_c from the tables as they are; what f moves by when all that reductions see moves by r_c
3. verified      iff nothing failed and the sum ≤ total ≤ ε

What the network computes is the target as it is written, `targets.coordinatewise` being trusted, as the parser is, to
take reductions apart without changing them.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.counted.claims import constant_failures, field_failures
from sumformer.certificates.checker.counted.modulus import Modulus
from sumformer.certificates.checker.counted.network import Network, read_counted
from sumformer.certificates.checker.counted.rounding import rounding
from sumformer.certificates.checker.counted.search import bound
from sumformer.certificates.checker.files import Tensors, read_certificate, read_weights
from sumformer.certificates.checker.grid.claims import KINDS, NAMES, TOLERANCE
from sumformer.certificates.checker.grid.tables import radius, table_failures
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import (
    claim_failures,
    claims,
    hash_failures,
    proved_verdict,
    sum_above,
    term_failures,
)
from sumformer.certificates.checker.verification import Verification
from sumformer.targets.target import Target


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    net, f = read_counted(folder), read_target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c, KINDS)
    broken = field_failures(c, f, net) or table_failures(tensors, net.cells, net.arithmetic, f.box)
    return proved_verdict(c, NAMES, failures + broken, not broken, lambda: _prove(c, f, net, tensors), start, sum_above)


def _prove(c: Certificate, f: Target, net: Network, tensors: Tensors) -> tuple[tuple[float, float], list[str]]:
    exact = [radius(tensors, k, f.box) for k in range(net.d)]
    radii, claimed = np.array([math.nextafter(float(r), math.inf) if r else 0.0 for r in exact]), claims(c)
    modulus_claim, rounding_claim = (claimed.get(name, 0.0) for name in NAMES)
    rounded = rounding(f, net, radii, rounding_claim)
    left = (c.total - rounded) * (1 - 2.0**-40)  # both claims may be met in another way, their sum may not be exceeded
    most = TOLERANCE[NAMES[0]] * modulus_claim
    goal = min(most, left) if left >= 0 else most
    parts = (bound(Modulus(f.expression, f.box, radii, f.tokens), goal), rounded)
    found = dict(zip(NAMES, parts, strict=True))
    recorded = constant_failures(c, net, exact)
    return parts, recorded + claim_failures(c, claimed, found, lambda name, claim: TOLERANCE[name] * claim)

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.claims import hash_failures
from sumformer.certificates.checker.files import read_certificate, read_weights
from sumformer.certificates.checker.grid.claims import (
    NAMES,
    TOLERANCE,
    constant_failures,
    field_failures,
    term_failures,
)
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.certificates.checker.grid.rounding import rounding
from sumformer.certificates.checker.grid.tables import Network, radii, read_grid, table_failures
from sumformer.certificates.checker.interval import ASSUMPTION
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target

GOAL = 1.02  # of the recorded constant
COUNTS = 128


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    net, f = read_grid(folder), read_target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c)
    broken = field_failures(c, f, net)
    broken = broken or table_failures(tensors, net, f.box)
    parts = (math.inf, math.inf)
    if not broken:
        try:
            with np.errstate(all="ignore"):
                parts, found = _prove(c, f, net, tensors)
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


def _prove(
    c: Certificate, f: Target, net: Network, tensors: dict[str, NDArray[Any]]
) -> tuple[tuple[float, float], list[str]]:
    exact = radii(tensors, net, f.box, c.constants.get("positions") is True)
    half = f.box.radius
    free = net.d - (c.constants.get("positions") is True)
    ratio = max((r / h for r, h in zip(exact[:free], half, strict=False)), default=Fraction(0))
    failures = constant_failures(c, net, ratio)
    above = np.array([math.nextafter(float(r), math.inf) if r else 0.0 for r in exact])
    goal = GOAL * float(c.constants["lipschitz"]) * float(ratio)
    counts = range(f.tokens.minimum, f.tokens.maximum + 1)
    if len(counts) > COUNTS:
        raise Unproved(f"tokens: more than {COUNTS} different n")
    modulus = max(Modulus(f.expression, f.box, n, above).bound(goal) for n in counts)
    parts = (modulus, rounding(f, net.arithmetic))
    claimed = {term.name: term.bound for term in c.terms}
    for name, part in zip(NAMES, parts, strict=True):
        if not part <= TOLERANCE[name] * claimed.get(name, 0.0):
            failures.append(f"term {name!r}: {claimed.get(name, 0.0):.6g} is claimed, {part:.6g} found")
    if not math.fsum(parts) <= c.total:
        failures.append(f"total: {c.total:.6g} is claimed, {math.fsum(parts):.6g} found")
    return parts, failures

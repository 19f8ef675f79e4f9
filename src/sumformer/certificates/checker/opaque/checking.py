"""check(directory) for a function without a formula: L·r is recomputed; L, and equivariance, cannot be.

What is derived again from the files: hashes, that certificate and network fit together, that the cells cover the box
with every point within r of its cell's centre, that the code can count all tokens, and L·r ≤ total ≤ ε with the L the
certificate names as an assumption. The answer is conditional on the certificate's assumptions, which it repeats.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from sumformer.certificates.certificate import COUNTED_IN_THE_BOX, Certificate
from sumformer.certificates.checker.files import Tensors, read_certificate, read_described, read_weights
from sumformer.certificates.checker.grid.tables import MAX_CELLS, latent_dimension, radius, table_failures
from sumformer.certificates.checker.json_values import has_keys, integer, is_number, items, same
from sumformer.certificates.checker.saved_target import read_domain
from sumformer.certificates.checker.verdict import (
    assumption_failures,
    hash_failures,
    key_failures,
    term_failures,
    verdict,
)
from sumformer.certificates.checker.verification import Verification
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.opaque import PREFIX, OpaqueTarget

TERM = "assumed modulus of continuity at the cells"
NOT_CHECKED = "not checked here: the modulus and the equivariance of the function, of which only the name is saved"
_RECORDED = ("cells", "code", "width")
_KEYS = {"type", "function", "width", "d", "n", "cells", "code", "arithmetic"}


def check(directory: str | Path) -> Verification:
    """What can be checked of such a folder; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    config = read_described(folder, "a network of a function without a formula", _config)
    box, tokens = read_domain(folder, c)
    broken = _shape_failures(c, config) or table_failures(tensors, config["cells"], "float64", box)
    wrong = _field_failures(c, config, box, tokens)
    failures = hash_failures(folder, c) + term_failures(c, {TERM: "assumed"}) + broken + wrong
    bound = math.inf if broken else _bound(c, box, tensors)
    if not broken and not bound <= c.total <= c.epsilon:
        failures.append(f"total: {c.total:.6g} is claimed for ε = {c.epsilon:.6g}; L·r = {bound:.6g}")
    bound = math.inf if wrong else bound  # of another network, or under other assumptions
    return verdict(c, {TERM: bound}, bound, failures, start, proviso=NOT_CHECKED)


def _bound(c: Certificate, box: Box, tensors: Tensors) -> float:
    """L·r, rounded up, r the largest distance in any coordinate from a point of the box to its cell's centre."""
    constant: Any = c.constants.get("assumed_lipschitz")
    if not is_number(constant) or not 0 <= constant < math.inf:
        return math.inf
    exact = Fraction(constant) * max(radius(tensors, k, box) for k in range(c.d))
    return math.nextafter(float(exact), math.inf) if exact else 0.0


def _config(data: Any) -> dict[str, Any]:
    has_keys(data, _KEYS)
    for value in (data["d"], data["n"], data["width"], *items(data["cells"])):
        integer(value, low=1)
    if math.prod(data["cells"]) > MAX_CELLS:
        raise ValueError(f"expected at most {MAX_CELLS} cells in all")
    return dict(data)


def _shape_failures(c: Certificate, config: dict[str, Any]) -> list[str]:
    alike = config["arithmetic"] == c.arithmetic and config["d"] == c.d and len(config["cells"]) == c.d
    return [] if alike else ["arithmetic, d, cells: the network's are not the certificate's"]


def _field_failures(c: Certificate, config: dict[str, Any], box: Box, tokens: Tokens) -> list[str]:
    out = []
    if c.target != PREFIX + str(config["function"]):
        out.append(f"target: the certificate is about {c.target}, the network about {config['function']}")
    if (c.architecture, c.norm, c.route, c.arithmetic) != ("sumformer", "sup", "grid", "float64"):
        out.append("architecture, norm, route, arithmetic: expected a sumformer in sup norm by route grid in float64")
    if config["n"] < tokens.maximum or tokens.symbolic:
        out.append(f"tokens: the network counts up to {config['n']} tokens, the certificate says {c.tokens}")
    dimension = latent_dimension(str(config["code"]), config["n"], math.prod(config["cells"]))
    if dimension is None or (config["code"] == "syndrome" and not tokens.exact):
        out.append(f"code: {config['code']!r} cannot tell these multisets apart")
    elif dimension != c.latent_dimension:
        out.append(f"latent_dimension: the certificate says {c.latent_dimension}, the code has {dimension}")
    if [(t.name, t.kind) for t in c.terms] != [(TERM, "assumed")] or c.terms[0].bound != c.total:
        out.append(f"terms: expected the one term {TERM!r}, of kind assumed")
    out += key_failures(c.constants, {*_RECORDED, "assumed_lipschitz"})
    for name in _RECORDED:
        if not same(c.constants.get(name), config[name]):
            out.append(f"constants: {name} is recorded as {c.constants.get(name)!r}, the network's is {config[name]!r}")
    lipschitz: Any = c.constants.get("assumed_lipschitz")
    f = OpaqueTarget(None, str(config["function"]), config["width"], c.d, box, tokens, lipschitz)
    return out + assumption_failures(c, *f.assumptions, COUNTED_IN_THE_BOX)

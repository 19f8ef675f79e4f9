"""check(directory) for a function without a formula: L·r is recomputed; L, and equivariance, cannot be.

What is derived again from the files: hashes, that certificate and network fit together, that the cells cover the box
with every point within r of its cell's centre, that the code can count all tokens, and L·r ≤ total ≤ ε with the L the
certificate names as an assumption. The answer is conditional on the certificate's assumptions, which it repeats.
"""

from __future__ import annotations

import json
import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.certificates.checker.claims import hash_failures
from sumformer.certificates.checker.files import CONFIG_FILE, read_certificate, read_weights
from sumformer.certificates.checker.verification import Verification
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.domain import Box, Tokens

PREFIX = "opaque:"
TERM = "assumed modulus of continuity at the cells"
NOT_CHECKED = "not checked here: the modulus and the equivariance of the function, of which only the name is saved"
_KEYS = {"type", "function", "width", "d", "n", "cells", "code", "arithmetic"}


def check(directory: str | Path) -> Verification:
    """What can be checked of such a folder; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    config = _config(folder)
    try:
        box, tokens = Box.parse(c.box, c.d), Tokens.parse(c.tokens)
    except SumformerError as error:
        raise FileFormatError(folder / CERTIFICATE_FILE, f"its domain cannot be read ({error})") from error
    failures = hash_failures(folder, c) + _field_failures(c, config, tokens)
    radius = Fraction(0)
    for k in range(c.d):
        found, problem = _radius(box, k, config["cells"], tensors)
        failures += problem
        radius = max(radius, found)
    if tensors.keys() != {f"{name}.{k}" for name in ("edges", "centres") for k in range(c.d)}:
        failures.append("weights: expected edges and centres for each coordinate, and nothing else")
    constant = c.constants.get("assumed_lipschitz")
    known = isinstance(constant, int | float) and 0 <= constant < math.inf
    exact = Fraction(constant) * radius if known and isinstance(constant, int | float) else None
    bound = math.inf if exact is None else math.nextafter(float(exact), math.inf)
    if not bound <= c.total <= c.epsilon:
        failures.append(f"total: {c.total:.6g} is claimed for ε = {c.epsilon:.6g}; L·r = {bound:.6g}")
    return Verification(
        verified=not failures,
        bound=bound,
        claimed=float(c.total),
        epsilon=float(c.epsilon),
        terms=((TERM, bound),),
        failures=tuple(failures),
        assumptions=(*c.assumptions, NOT_CHECKED),
        seconds=time.perf_counter() - start,
    )


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(path, f"is not readable JSON ({error})") from error
    if not isinstance(config, dict) or config.keys() != _KEYS:
        raise FileFormatError(path, f"expected the fields {', '.join(sorted(_KEYS))}")
    numbers = [
        config["d"],
        config["n"],
        config["width"],
        *(config["cells"] if isinstance(config["cells"], list) else [None]),
    ]
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in numbers):
        raise FileFormatError(path, "expected whole numbers ≥ 1 in d, n, width and cells")
    return config


def _field_failures(c: Certificate, config: dict[str, Any], tokens: Tokens) -> list[str]:
    out = []
    if c.target != PREFIX + str(config["function"]):
        out.append(f"target: the certificate is about {c.target}, the network about {config['function']}")
    if (c.architecture, c.norm, c.route, c.arithmetic) != ("sumformer", "sup", "grid", "float64"):
        out.append("architecture, norm, route, arithmetic: expected a sumformer in sup norm by route grid in float64")
    if config["arithmetic"] != c.arithmetic or config["d"] != c.d or len(config["cells"]) != c.d:
        out.append("arithmetic, d, cells: the network's are not the certificate's")
    if config["n"] < tokens.maximum or tokens.symbolic:
        out.append(f"tokens: the network counts up to {config['n']} tokens, the certificate says {c.tokens}")
    dimension = _latent_dimension(config)
    if dimension is None or (config["code"] == "syndrome" and not tokens.exact):
        out.append(f"code: {config['code']!r} cannot tell these multisets apart")
    elif dimension != c.latent_dimension:
        out.append(f"latent_dimension: the certificate says {c.latent_dimension}, the code has {dimension}")
    if [(t.name, t.kind) for t in c.terms] != [(TERM, "assumed")] or c.terms[0].bound != c.total:
        out.append(f"terms: expected the one term {TERM!r}, of kind assumed")
    constant = f"most {c.constants.get('assumed_lipschitz')!r}·δ"
    if not any(a.startswith("modulus:") and a.endswith(constant) for a in c.assumptions):
        out.append(f"assumptions: the modulus, at {constant}, is missing, on which the bound relies")
    return out


def _latent_dimension(config: dict[str, Any]) -> int | None:
    """d' of the code; None where it cannot count n tokens exactly."""
    n, cells, code = int(config["n"]), math.prod(config["cells"]), str(config["code"])
    if code == "syndrome":
        return n - 1 if n * (2 * max(cells, n + 1)) ** 2 < 2**53 else None
    base = {"lanes": 1 << n.bit_length(), "lanes n+1": n + 1}.get(code)
    if base is None or base > 2**53:
        return 1 if code in ("integer", "integer n+1") else None
    digits = 1
    while base ** (digits + 1) <= 2**53:
        digits += 1
    return int(-(-cells // digits))


def _radius(box: Box, k: int, cells: list[int], tensors: dict[str, NDArray[Any]]) -> tuple[Fraction, list[str]]:
    """The largest distance in coordinate k from a point of the box to its cell's centre."""
    edges, centres = tensors.get(f"edges.{k}"), tensors.get(f"centres.{k}")
    if edges is None or centres is None or edges.dtype != np.float64 or centres.dtype != np.float64:
        return Fraction(0), [f"weights: edges.{k} and centres.{k} are not there as float64"]
    if edges.shape != (cells[k] - 1,) or centres.shape != (cells[k],):
        return Fraction(0), [f"weights: edges.{k} and centres.{k} do not have the shapes of {cells[k]} cells"]
    if not bool(np.isfinite(edges).all() and np.isfinite(centres).all() and (np.diff(edges) >= 0).all()):
        return Fraction(0), [f"weights: edges.{k} should ascend, and all numbers be finite"]
    outside = any(not box.lower[k] <= Fraction(float(m)) <= box.upper[k] for m in centres)
    problems = [f"weights: centres.{k} leave the box, where nothing is known of the function"] if outside else []
    inner = [Fraction(float(e)) for e in edges]
    ends = [box.lower[k], *(min(max(e, box.lower[k]), box.upper[k]) for e in inner), box.upper[k]]
    pairs = zip(ends[:-1], ends[1:], (Fraction(float(m)) for m in centres), strict=True)
    return max(max(m - a, b - m) for a, b, m in pairs), problems

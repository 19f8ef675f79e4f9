"""check(directory) for N(X) = M((x_1, 1), …, (x_n, n)): M's own checker, over tokens of 𝒳 × [1, n].

The certificate's target is written for these tokens: i stands in it as x[d], j as y[d]. What holds for all tokens of
𝒳 × [1, n] holds for those whose last coordinate is their place, and for a target `written` otherwise, which is shown
to be the same at whole positions. The wrapped network is written out as a folder of its
own, its configuration and tensors unchanged, and checked there; its hashes are those of that folder.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate, sha256
from sumformer.certificates.checker.files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    read_certificate,
    read_described,
    read_weights,
)
from sumformer.certificates.checker.json_values import has_keys
from sumformer.certificates.checker.positions.written import written_failures
from sumformer.certificates.checker.saved_target import read_domain, read_target
from sumformer.certificates.checker.verdict import hash_failures
from sumformer.certificates.checker.verification import Verification

WRAPPED = {
    "ExpressionSumformer": "checking",
    "MeshSumformer": "mesh.checking",
    "GridSumformer": "grid.checking",
    "SymmetricSumformer": "symmetric.checking",
    "CompiledTransformer": "compiled.checking",
}
_PREFIX = "network."


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    config = read_described(folder, "a network with positions", _wrapped)
    failures = hash_failures(folder, c) + _domain_failures(folder, c)
    if c.constants.get("positions") is not True:
        failures.append("constants: positions is not recorded as true")
    if not all(name.startswith(_PREFIX) for name in tensors):
        failures.append("weights: expected the wrapped network's tensors alone")
    if "written" in c.constants and not failures:
        failures += written_failures(c.constants["written"], read_target(folder, c))
    with tempfile.TemporaryDirectory() as place:
        inner = _unwrapped(Path(place), c, config, tensors)
        module = import_module(f"sumformer.certificates.checker.{WRAPPED[config['type']]}")
        found: Verification = module.check(inner)
    return replace(
        found,
        verified=found.verified and not failures,
        bound=math.inf if failures else found.bound,
        failures=(*failures, *found.failures),
        seconds=time.perf_counter() - start,
    )


def _wrapped(data: Any) -> dict[str, Any]:
    has_keys(data, {"type", "network"})
    network = data["network"]
    if not isinstance(network, dict) or network.get("type") not in WRAPPED:
        raise ValueError(f"expected a network of type {', '.join(WRAPPED)} in it")
    return network


def _domain_failures(folder: Path, c: Certificate) -> list[str]:
    """The last coordinate runs from 1 to n (to 2 where n = 1), and n is one number."""
    box, tokens = read_domain(folder, c)
    if c.d < 2 or not tokens.exact:
        return ["tokens, d: positions need one number of tokens, and a coordinate of their own"]
    if c.arithmetic != "float64" and tokens.maximum > 2**24:
        return ["tokens: places beyond 2^24 are no float32 numbers"]
    if (box.lower[-1], box.upper[-1]) != (Fraction(1), Fraction(max(2, tokens.maximum))):
        return [f"box: its last interval should be 1:{max(2, tokens.maximum)}, the positions"]
    return []


def _unwrapped(place: Path, c: Certificate, config: dict[str, Any], tensors: dict[str, Any]) -> Path:
    import safetensors.numpy

    (place / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
    bare = {name.removeprefix(_PREFIX): value for name, value in tensors.items()}
    (place / WEIGHTS_FILE).write_bytes(safetensors.numpy.save(bare))
    signed = replace(c, weights_sha256=sha256(place / WEIGHTS_FILE), config_sha256=sha256(place / CONFIG_FILE))
    (place / CERTIFICATE_FILE).write_text(signed.to_json(), encoding="utf-8")
    return place

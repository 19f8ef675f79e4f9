"""check(directory) for a `CompiledTransformer`: sup |f − N| ≤ |f − S| + |S − program| + |program − N|.

0. integrity     hashes; certificate, configuration and weights fit together
1. |f − S|       S is the saved ideal Sumformer: its own proof, in real arithmetic
2. program = S   both over common atoms; what the rounding of weights leaves is bounded by its mass
3. ranges        of every value, derived again
4. the stream    every unit of every block by the rule of its gadget, with rounding; every other weight is 0
5. verified      iff nothing failed and the sum ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

from sumformer.certificates.certificate import OF_A_COMPILED_NETWORK, Certificate
from sumformer.certificates.checker.compiled.files import Compiled, read_compiled
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.head import ARCHITECTURES, Head, read_head
from sumformer.certificates.checker.compiled.ideal import Ideal, prove_ideal
from sumformer.certificates.checker.compiled.program import Program, derive, functional
from sumformer.certificates.checker.compiled.walk import walk
from sumformer.certificates.checker.files import read_certificate
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import (
    assumption_failures,
    claim_failures,
    claims,
    hash_failures,
    key_failures,
    proved_verdict,
    sum_above,
    term_failures,
)
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target

KINDS = {
    "interpolation remainder": "proved",
    "dropped and rounded coefficients": "enclosed",
    "φ gadgets": "proved",
    "sum head": "rounding",
    "ψ gadgets": "proved",
    "rounding": "rounding",
}
NAMES = ("interpolation remainder", "dropped and rounded coefficients", "gadgets", "rounding and sum head")
Parts = tuple[float, float, float, float]


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c = read_certificate(folder)
    net, f = read_compiled(folder), read_target(folder, c)
    failures = hash_failures(folder, c) + term_failures(c, KINDS)
    broken = _field_failures(c, f, net)
    return proved_verdict(c, NAMES, failures + broken, not broken, lambda: _prove(folder, c, f, net), start, sum_above)


def _prove(folder: Path, c: Certificate, f: Target, net: Compiled) -> tuple[Parts, list[str]]:
    head = read_head(net, f.tokens)
    _all_named(net, head)
    forms = Forms(net.d)
    ideal = prove_ideal(folder, c, f, net, forms)
    program = derive(net, forms, ideal)
    apart = _identity(net, forms, ideal, program)
    errors = walk(net, program, head)
    if not all(bool(np.isfinite(e).all()) for e in errors) or not all(math.isfinite(far) for far in apart):
        raise Unproved("the error of an output is not bounded")
    gadgets = max(float(e[0]) for e in errors)
    everything = max(float(e[1]) + far for e, far in zip(errors, apart, strict=True))
    parts = (*ideal.parts, gadgets, max(0.0, everything - gadgets) * (1 + 1e-15))
    return parts, _claim_failures(c, parts)


def _identity(net: Compiled, forms: Forms, ideal: Ideal, program: Program) -> list[float]:
    """|program − S| for every output: the nearer of the ways in which S is written."""
    if len(net.read_out) != net.outputs:
        raise Unproved("read-out: the ledger has another number of outputs")
    mine, ways = [functional(row, forms, program) for row in net.read_out], ideal.outputs()
    return [
        min(forms.atoms.distance(e.terms, way[i].terms) + e.error + way[i].error for way in ways)
        for i, e in enumerate(mine)
    ]


def _all_named(net: Compiled, head: Head) -> None:
    """No tensor but those that the proof reads."""
    wanted = {"read_in.weight", "read_in.bias", "read_out.weight"} | head.tensors
    for k in range(len(net.layers)):
        parts = ("b_1", "b_2", "value_1", "value_2", "place_1", "place_2")
        wanted |= {f"blocks.{k}.feed_forward.{part}" for part in parts}
    unknown = [name for name in net.tensors if name not in wanted and not name.startswith("ideal.")]
    if unknown:
        raise Unproved(f"weights: unknown tensor {unknown[0]}")


def _field_failures(c: Certificate, f: Target, net: Compiled) -> list[str]:
    """Certificate, target and configuration must speak of one network."""
    out = []
    kind = net.attention.get("type")
    if c.architecture != ARCHITECTURES.get(str(kind)) or c.norm != "sup":
        out.append(f"architecture, norm: {c.architecture!r} in {c.norm!r} is not what this network is")
    symmetric = net.ideal.get("type") == "SymmetricSumformer"
    routes = ("symmetric",) if symmetric else ("sums",) if net.ideal.get("kernels") else ("exact", "sums")
    if c.route not in routes:
        out.append(f"route: {c.route!r} is not that of the network's Sumformer")
    if c.arithmetic != "float64":
        out.append(f"arithmetic: {c.arithmetic!r}; a compiled network is proved in float64")
    if (net.d, net.outputs) != (f.d, f.width):
        out.append(f"d, width: the target's are {f.d}, {f.width}, the network's {net.d}, {net.outputs}")
    if net.centre != f.box.centre or net.radius != f.box.radius:
        out.append("box: the ledger's centre and radius are not those of the certificate's box")
    if c.latent_dimension != len(net.sources):
        out.append(f"latent_dimension: {c.latent_dimension} is claimed, the attention carries {len(net.sources)}")
    if c.constants.get("blocks") != len(net.layers):
        out.append("constants: blocks is not the number of blocks")
    out += key_failures(c.constants, {"blocks", "ideal"}, {"positions"})
    return out + assumption_failures(c, *OF_A_COMPILED_NETWORK)


def _claim_failures(c: Certificate, parts: Parts) -> list[str]:
    """The certificate parts gadgets by φ and ψ, and roundings by where they are; this proof does not."""
    claimed = claims(c)
    claimed["rounding and sum head"] = claimed.get("rounding", 0.0) + claimed.get("sum head", 0.0)
    claimed["gadgets"] = claimed.get("φ gadgets", 0.0) + claimed.get("ψ gadgets", 0.0)
    room = 1e-6 * c.total + claimed["rounding and sum head"]
    return claim_failures(c, claimed, dict(zip(NAMES, parts, strict=True)), lambda _, claim: 2 * claim + room)

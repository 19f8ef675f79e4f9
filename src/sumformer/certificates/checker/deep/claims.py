"""Where a certificate of a `DeepTransformer` contradicts its weights: each recorded constant is found again in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sumformer.certificates.certificate import OF_A_DEEP_NETWORK, Certificate
from sumformer.certificates.checker.deep.connections import reach, steps
from sumformer.certificates.checker.deep.files import Attention, Network, Stack
from sumformer.certificates.checker.deep.quantiser import Quantiser
from sumformer.certificates.checker.json_values import same
from sumformer.certificates.checker.verdict import assumption_failures, claim_failures, claims, key_failures
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.target import Target

NAMES = ("cells", "tokens in equal cells", "ramps")
ZERO = "the target itself"
KINDS = {
    **dict(zip(NAMES, ("enclosed", "enclosed", "proved"), strict=True)),
    "softmax": "proved",
    "rounding": "rounding",
    ZERO: "enclosed",
}
STEPS = ("quantise", "contextual mapping", "value mapping")
_KEYS = {"theorem", "n", "cells", "parts", "p", "layers"}
_BUILT = {"ramp", "temperature", "scale", "pattern", "places", "read_out_layers"}


def field_failures(c: Certificate, f: Target, network: Network) -> list[str]:
    """Certificate, target and configuration must speak of one network, in one norm."""
    out = []
    if (
        not f.tokens.exact
        or f.tokens.minimum != network.n
        or f.input_box.d != network.d
        or len(network.head) != f.width
    ):
        out.append("target: its tokens or widths are not the network's")
    if c.arithmetic != "float64" or c.latent_dimension != network.width:
        out.append("arithmetic, latent_dimension: not those of the network")
    if c.norm.startswith("d_") is False or c.norm[2:] not in (repr(power(c)), repr(power(c)).removesuffix(".0")):
        out.append(f"norm: {c.norm!r} is not d_p for the recorded p")
    if c.constants.get("positions", True) is not True:
        out.append("constants: positions is recorded, but not as true")
    theorems = _theorems(c, f, network)
    theorem = c.constants.get("theorem")
    if theorem not in theorems:
        out.append(f"architecture, theorem: {c.architecture!r} by {theorem!r} is not what this network is")
    if c.route != (theorem if network.layers else f"{theorem}, zero network"):
        out.append(f"route: {c.route!r} is not the theorem")
    keys = _KEYS | (_BUILT if network.layers else {"zero"})
    return out + key_failures(c.constants, keys, {"positions"}) + assumption_failures(c, *OF_A_DEEP_NETWORK)


def _theorems(c: Certificate, f: Target, network: Network) -> tuple[str, ...]:
    """Those that build such a network; the zero network may stand for any of its architecture."""
    if network.layers:
        dense = "Y Theorem 2" if network.places is None else "Y Theorem 3"
        wanted = ("deep-transformer", dense) if network.pattern is None else ("sparse-transformer", "S Theorem 1")
        return wanted[1:] if c.architecture == wanted[0] else ()
    zero = {"deep-transformer": ("Y Theorem 3",) if f.positioned else ("Y Theorem 2", "Y Theorem 3")}
    return {**zero, "sparse-transformer": ("S Theorem 1",)}.get(c.architecture, ())


def constant_failures(c: Certificate, network: Network, quantiser: Quantiser | None) -> list[str]:
    """Recorded constants that are not those of the weights; without a quantiser, of the zero network."""
    zero = {"n": network.n, "cells": 0, "layers": [], "zero": True}
    found = zero if quantiser is None else _found(network, quantiser)
    return [
        f"constants: {name} is recorded as {c.constants[name]!r}, found {value!r}"
        for name, value in found.items()
        if not same(c.constants[name], value)
    ]


def _found(network: Network, quantiser: Quantiser) -> dict[str, Any]:
    kinds = [isinstance(layer, Attention) for layer in network.layers]
    first, heads = 1, sum(kinds)
    if kinds != [False] * first + [True] * heads + [False] * (len(kinds) - heads - first):
        raise Unproved("the attention layers do not stand between the quantiser and the look-up")
    if any(layer.pattern != network.pattern for layer in network.layers if isinstance(layer, Attention)):
        raise Unproved("attention layers follow different patterns")
    lengths = [len(layer.W1) for layer in network.layers if isinstance(layer, Stack)]
    built = (lengths[0], heads, sum(lengths[1:-1]))
    rows = zip(STEPS, built, _counts(network, quantiser.q), strict=True)
    return {
        "n": network.n,
        "cells": quantiser.q,
        "ramp": str(quantiser.ramp),
        "temperature": _temperature(network),
        "scale": _scale(network),
        "pattern": network.pattern,
        "places": None if quantiser.places is None else list(quantiser.places),
        "layers": [{"step": s, "built": b, "formula": words, "count": k} for s, b, (words, k) in rows],
        "read_out_layers": lengths[-1],
    }


def _counts(network: Network, q: int) -> tuple[tuple[str, int], ...]:
    """The theorems' formulas, and what they come to."""
    n, d = network.n, network.d
    cells = q**d
    if network.places is None:
        first, last = ("d/δ + d", d * q + d), ("1 + d + n·C(δ^{-d}, n)", 1 + d + n * math.comb(cells, n))
        return first, ("δ^{-d} + 1", cells + 1), last
    middle = ("nδ^{-d} + 1", n * cells + 1)
    if network.pattern is not None:
        every = steps(network.pattern, n)
        middle = ("p(n−1)/δ^d + s", len(every) * (n - 1) * cells + reach(every))
    return ("dn/δ", d * n * q), middle, ("nδ^{-dn}", n * cells**n)


def _temperature(network: Network) -> int | None:
    """λ, where queries that read their token read λ times its id, as keys do once."""
    layers = [layer for layer in network.layers if isinstance(layer, Attention)]
    reads = [(q, k) for layer in layers for q, k in zip(layer.WQ, layer.WK, strict=True) if q.any()]
    ratios = {float(q[k != 0][0] / k[k != 0][0]) for q, k in reads if k.any()}
    if len(ratios) != 1 or not all((q == next(iter(ratios)) * k).all() for q, k in reads):
        return None
    (ratio,) = ratios
    return int(ratio) if ratio.is_integer() else None


def _scale(network: Network) -> int | None:
    """k, where every output is one coordinate times 2^{−k}."""
    found = {float(v) for row in network.head for v in row[row != 0]}
    mantissa, exponent = np.frexp(next(iter(found), 0.0))
    return 1 - int(exponent) if len(found) == 1 and mantissa == 0.5 else None


def part_failures(c: Certificate, found: Mapping[str, float]) -> list[str]:
    """Values that are written are rounded: in these parts, in a term of its own in the certificate."""
    claimed = claims(c)
    room = claimed.get("rounding", 0.0) + 1e-6 * c.total
    return claim_failures(c, claimed, found, lambda _, claim: 1.02 * claim + room)


def power(c: Certificate) -> float:
    """p of d_p; NaN where none is recorded."""
    p = c.constants.get("p")
    return float(p) if isinstance(p, int | float) and not isinstance(p, bool) and 1 <= p < 1e6 else math.nan


def whole(c: Certificate, name: str, least: int = 1) -> int:
    """A recorded number that the proof goes by."""
    value = c.constants.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10_000:
        raise Unproved(f"constants: {name} should be a whole number from {least}, is {value!r}")
    return value

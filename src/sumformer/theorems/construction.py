"""construct(target, ε) → Construction(target, network, certificate): the theorem's statement as a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from sumformer.algebra.rounding import shown_up
from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate, sha256
from sumformer.errors import FileFormatError, InputError, RefusedError
from sumformer.nn.patterns.pattern import Pattern
from sumformer.nn.positioned import Positioned
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE, PretrainedModule
from sumformer.targets import Node
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.architectures import takers, theorem
from sumformer.theorems.built import Built
from sumformer.theorems.constructed import Construction
from sumformer.theorems.request import (
    asked_arithmetic,
    asked_epsilon,
    asked_options,
    asked_target,
    refuse_coordinates,
    spelt,
)
from sumformer.theorems.routes import by_route
from sumformer.theorems.saved_target import saved_target

EXACT_PLACES = 2**24  # positions are float32 numbers up to here


def construct(
    target: Target | OpaqueTarget | Node | str,
    epsilon: float,
    *,
    architecture: str = "sumformer",
    route: str | None = None,
    dtype: str = "float64",
    merges: int = 0,
    p: float | None = None,
    pattern: Pattern | str | None = None,
    fused: bool | None = None,
    options: Mapping[str, Any] | None = None,
    **domain: Any,
) -> Construction:
    """A network N with sup_X ‖f(X) − N(X)‖_∞ ≤ ε and a certificate of it; refuses with reasons what it cannot prove.

    target          a formula as a string or tree, with n, d, box, positions as in `sumformer.target`; or a target
    architecture    one of `theorems.architectures.ARCHITECTURES`
    route           the proof of A 4.1 to use; without it, the first that meets ε
    dtype           "float64", "float32", or "mixed" (float32 in and out, float64 inside)
    merges          how deep summaries of parts may be merged, by `Construction.summarise`, `+` and `apply`
    p               for networks that meet ε in d_p(f, N) = (∫ ‖f − N‖_p^p)^{1/p} instead of the sup norm
    pattern         a sparse Transformer's connections, as "strided:2"
    fused           of a deep or sparse Transformer: find look-up layers by search, with the same results
    options         others by name: prefer, activation, k, … of an architecture's theorem, code of route grid
    """
    start = time.perf_counter()
    f, epsilon, arithmetic = asked_target(target, domain), asked_epsilon(epsilon), asked_arithmetic(dtype, merges)
    if f.positioned and f.tokens.maximum > EXACT_PLACES and arithmetic.name != "float64":
        raise RefusedError(f"places beyond {EXACT_PLACES} are no float32 numbers", ["dtype float64 knows them"])
    refuse_coordinates(f)
    options = asked_options(options, p=p, pattern=pattern, fused=fused)
    built = _built(f, epsilon, arithmetic, architecture, route, options)
    if not built.total <= epsilon:
        raise RefusedError(f"ε = {epsilon:g} is not reached: {shown_up(built.total)} is proved", reachable=built.total)
    if f.positioned and not built.constants.get("positions"):
        built = replace(built, network=Positioned(built.network), constants={**built.constants, "positions": True})
    certificate = _certificate(built.target or f, epsilon, arithmetic.name, built)
    return Construction(f, built.network, certificate, time.perf_counter() - start, built.passed_over)


def _built(
    f: Target | OpaqueTarget,
    epsilon: float,
    arithmetic: Arithmetic,
    architecture: str,
    route: str | None,
    options: Mapping[str, Any],
) -> Built:
    """By a route of A 4.1, or by the theorem of another architecture."""
    if architecture == "sumformer":
        foreign = [key for key in options if key != "code"]
        if foreign:
            others = {name for key in foreign for name in takers(key)}
            who = f"that of architecture (--as) {' or '.join(sorted(others))}" if others else "none of any architecture"
            raise InputError(f"construct: a sumformer has one option, code; {spelt(foreign)} is {who}")
        return by_route(f, epsilon, arithmetic, route, options.get("code"))
    if arithmetic.merges:
        raise InputError("construct: merges is an option of a sumformer")
    if isinstance(f, OpaqueTarget):
        raise RefusedError("a function without a formula can only become a sumformer, by route grid")
    return theorem(architecture, options)(f, epsilon, arithmetic, route=route, **options)


def load(directory: str | Path, *, function: Callable[[Tensor], Tensor] | None = None) -> Construction:
    """Read back what `save` wrote, if it is that; the claim is not re-checked here (`verify` does that).

    A target without a formula is saved by name only: give its `function` again to evaluate it and its network.
    """
    folder = Path(directory)
    certificate = Certificate.read(folder / CERTIFICATE_FILE)
    network: Any = PretrainedModule.from_pretrained(folder).requires_grad_(False)
    for name, signed in ((WEIGHTS_FILE, certificate.weights_sha256), (CONFIG_FILE, certificate.config_sha256)):
        if sha256(folder / name) != signed:
            without = "sumformer.nn.PretrainedModule.from_pretrained reads the network without it"
            raise FileFormatError(folder / name, f"is not the file that {CERTIFICATE_FILE} was signed for; {without}")
    return Construction(saved_target(certificate, network, function), network, certificate)


def _certificate(f: Target | OpaqueTarget, epsilon: float, arithmetic: str, built: Built) -> Certificate:
    return Certificate(
        target=f.source,
        d=f.d,
        box=str(f.box),
        tokens=str(f.tokens),
        arithmetic=arithmetic,
        route=built.route,
        epsilon=epsilon,
        latent_dimension=built.latent_dimension,
        terms=built.terms,
        total=built.total,
        assumptions=built.assumptions,
        constants={"why": built.why, **built.constants},
        architecture=built.architecture,
        norm=built.norm,
    )

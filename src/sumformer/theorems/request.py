"""What is asked of `construct`: ε > 0, p ≥ 1, a domain, a dtype, options; each as it should be, or an `InputError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import signature
from math import inf
from numbers import Real
from typing import Any

from sumformer.certificates.certificate import MAX_COORDINATES, MAX_MERGES
from sumformer.errors import InputError, RefusedError
from sumformer.nn.patterns.named import named
from sumformer.targets.gallery import refuse_name
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.targets.target import target as make_target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS, Arithmetic

_DOMAIN = tuple(signature(make_target).parameters)[1:]


def asked_target(target: Any, domain: Mapping[str, Any]) -> Target | OpaqueTarget:
    """The target itself, or that of a formula over this domain."""
    unknown = [name for name in domain if name not in _DOMAIN]
    if unknown:
        hint = "; the number of tokens is n" if "tokens" in unknown else ""
        known = f"a domain is given by {', '.join(_DOMAIN)}{hint}"
        raise InputError(f"construct: it does not know {', '.join(unknown)}; {known}")
    if isinstance(target, Target | OpaqueTarget):
        if domain:
            names = ", ".join(domain)
            raise InputError(f"construct: a Target has its own domain; give {names} to target(…), not to construct")
        return target
    refuse_name(target, domain.get("d", 1))
    f: Target | OpaqueTarget = make_target(target, **domain)
    return f


def refuse_coordinates(f: Target | OpaqueTarget) -> None:
    """More than a certificate speaks of."""
    if f.d > MAX_COORDINATES:
        place = ", the place included" if f.positioned else ""
        raise RefusedError(
            f"certificates are of tokens with at most {MAX_COORDINATES} coordinates{place}; this target has {f.d}",
            ["what is not read can be left out", "sumformer fit learns a function of more, without a proof"],
        )


def asked_epsilon(value: Any) -> float:
    """The error allowed."""
    found = _float(value)
    if found is None or not 0 < found < inf:
        raise InputError(f"epsilon: expected a number 0 < ε < ∞, as 1e-3, got {_shown(value)}")
    return found


def asked_arithmetic(dtype: Any, merges: Any = 0) -> Arithmetic:
    """By its name, or as torch.float64, with summaries merged so deep."""
    name = str(dtype).removeprefix("torch.")
    if name not in ARITHMETICS:
        raise InputError(f"construct: expected dtype in {tuple(ARITHMETICS)}, got {dtype!r}")
    if not isinstance(merges, int) or isinstance(merges, bool) or not 0 <= merges <= MAX_MERGES:
        raise InputError(f"construct: expected merges from 0 to {MAX_MERGES}, got {_shown(merges)}")
    return replace(ARITHMETICS[name], merges=merges)


def asked_options(options: Mapping[str, Any] | None, **given: Any) -> dict[str, Any]:
    """The options and what was `given` of p, pattern and fused, by name."""
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise InputError(f'construct: expected options by name, as {{"prefer": "depth"}}, got {_shown(options)}')
    found = {**(options or {}), **{key: value for key, value in given.items() if value is not None}}
    if found.get("p") is not None:
        p = _float(found["p"])
        if p is None or not 1 <= p < inf:
            raise InputError(f"construct: expected a number 1 ≤ p < ∞ for d_p, as 2, got {_shown(found['p'])}")
        found["p"] = p
    if isinstance(found.get("pattern"), str):
        found["pattern"] = named(found["pattern"])
    if not isinstance(found.get("fused", False), bool):
        raise InputError(f"construct: expected fused True or False, got {_shown(found['fused'])}")
    return found


def spelt(names: Iterable[str]) -> str:
    """Names of options; --norm-p is p on the command line, the others are the same there."""
    return ", ".join("p (--norm-p)" if name == "p" else name for name in names)


def _float(value: Any) -> float | None:
    """A number of Python's or numpy's; None for anything else, truth values and strings included."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _shown(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    kind = "" if isinstance(value, Real) and not isinstance(value, bool) else f", of type {type(value).__name__}"
    return (text if len(text) <= 40 else text[:37] + "…") + kind

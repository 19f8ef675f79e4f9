"""verified ⇔ nothing failed and B' = Σ parts ≤ total ≤ ε: what every checker asks of the terms, and how it answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sumformer.certificates.certificate import NOT_CLAIMED, TORCH_FUNCTIONS, Certificate, sha256
from sumformer.certificates.checker.files import CONFIG_FILE, WEIGHTS_FILE
from sumformer.certificates.checker.interval import ASSUMPTION
from sumformer.certificates.checker.verification import Unproved, Verification

U = 2.0**-52  # sums of a few numbers ≥ 0 in another order differ by less for each of them
# what files made to deceive may provoke in a proof; none of it is a reason to believe them
_STOPPED = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def hash_failures(folder: Path, c: Certificate) -> list[str]:
    """Files that are not those the certificate was written for."""
    pairs = (("weights_sha256", WEIGHTS_FILE), ("config_sha256", CONFIG_FILE))
    return [f"{field}: {name} has another hash" for field, name in pairs if sha256(folder / name) != getattr(c, field)]


def assumption_failures(c: Certificate, *needed: str, functions: bool | None = None) -> list[str]:
    """The certificate names the assumptions of the proof, each once, and no other.

    `functions`: whether the network evaluates one of torch's. Then that assumption is needed too; else it may be named,
    unless this is None.
    """
    if functions or (functions is False and TORCH_FUNCTIONS in c.assumptions):
        needed = (*needed, TORCH_FUNCTIONS)
    out = [
        f"assumptions: {text!r} is missing, on which the proof relies" for text in needed if text not in c.assumptions
    ]
    out += [f"assumptions: {text!r} is none of the proof" for text in c.assumptions if text not in needed]
    return out or (["assumptions: one is named twice"] if len(c.assumptions) > len(needed) else [])


def key_failures(found: Mapping[str, object], needed: Collection[str], optional: Collection[str] = ()) -> list[str]:
    """Recorded constants are those that are compared, and remarks, which are not claimed."""
    missing, known = sorted(set(needed) - found.keys()), {*needed, *optional, *NOT_CLAIMED}
    unknown = sorted(found.keys() - known)
    out = [f"constants: {', '.join(missing)} missing"] if missing else []
    return out + ([f"constants: unknown {', '.join(unknown)}"] if unknown else [])


def term_failures(c: Certificate, kinds: Mapping[str, str]) -> list[str]:
    """Names and their `kinds`, signs, the sum and ε; a term of 0 may be left out."""
    out = []
    for term in c.terms:
        if kinds.get(term.name) != term.kind:
            out.append(f"term {term.name!r}: unknown name or kind {term.kind!r}")
        if not 0 <= term.bound < math.inf:
            out.append(f"term {term.name!r}: its bound {term.bound} is not a number ≥ 0")
    if len({term.name for term in c.terms}) != len(c.terms):
        out.append("terms: a name occurs twice")
    total = sum(term.bound for term in c.terms)
    if not (0 <= c.total < math.inf) or not abs(total - c.total) <= len(c.terms) * U * total:
        out.append(f"total: {c.total} is not the sum {total} of the terms")
    if not 0 < c.epsilon < math.inf or not c.total <= c.epsilon:
        out.append(f"epsilon: the total {c.total} is not ≤ ε = {c.epsilon}")
    return out


@contextmanager
def proving(failures: list[str]) -> Iterator[None]:
    """What stops a proof is one more failure."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Unproved as why:
        failures.append(f"proof: {why}")
    except _STOPPED as error:
        failures.append(f"proof: it cannot be carried out ({type(error).__name__}: {error})")


def claims(c: Certificate) -> dict[str, float]:
    """What is claimed, term by term."""
    return {term.name: term.bound for term in c.terms}


def claim_failures(
    c: Certificate, claimed: Mapping[str, float], found: Mapping[str, float], allowed: Callable[[str, float], float]
) -> list[str]:
    """Terms of which more is `found` than `allowed(name, claim)` grants to another way of counting; and the total."""
    short = [
        f"term {name!r}: {claimed.get(name, 0.0):.6g} is claimed, {part:.6g} found"
        for name, part in found.items()
        if part > allowed(name, claimed.get(name, 0.0)) or math.isnan(part)
    ]
    return short + total_failures(c, claimed, found)


def total_failures(c: Certificate, claimed: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """A total that is less than what is found, and the term that is exceeded most, where one is."""
    total = finite_sum(found.values())
    if total <= c.total:
        return []
    excess, worst = max((part - claimed.get(name, 0.0), name) for name, part in found.items())
    where = f"; most of it in the {worst}" if excess > 0 else ""
    return [f"total: {c.total:.6g} is claimed, {total:.6g} found{where}"]


def finite_sum(parts: Iterable[float]) -> float:
    """Σ parts; ∞ where a part, or the sum, is not finite."""
    parts = tuple(parts)
    try:
        return math.fsum(parts) if all(map(math.isfinite, parts)) else math.inf
    except OverflowError:
        return math.inf


def sum_above(parts: Sequence[float]) -> float:
    """A number ≥ Σ parts, for parts ≥ 0; 0 where all are."""
    return math.nextafter(finite_sum(parts), math.inf) if any(parts) else 0.0


def proved_verdict(
    c: Certificate,
    names: Sequence[str],
    failures: list[str],
    fits: bool,
    prove: Callable[[], tuple[Sequence[float], list[str]]],
    start: float,
    total: Callable[[Sequence[float]], float] = finite_sum,
) -> Verification:
    """The verdict on what `prove()` finds: the parts of B', called by `names`, and more failures.

    Every part is ∞ where the proof stops, and where nothing `fits`: then it does not begin.
    """
    parts: Sequence[float] = (math.inf,) * len(names)
    if fits:
        with proving(failures):
            parts, found = prove()
            failures += found
    return verdict(c, dict(zip(names, parts, strict=True)), total(parts), failures, start)


def verdict(
    c: Certificate,
    parts: Mapping[str, float],
    bound: float,
    failures: Iterable[str],
    start: float,
    proviso: str = ASSUMPTION,
) -> Verification:
    """`bound` is the sum of the parts, rounded up as their proof needs; the `proviso` is the checker's own."""
    failures = tuple(failures)
    return Verification(
        verified=not failures and bound <= c.total <= c.epsilon,
        bound=bound,
        claimed=float(c.total),
        epsilon=float(c.epsilon),
        terms=tuple(parts.items()),
        failures=failures,
        assumptions=(*c.assumptions, proviso),
        seconds=time.perf_counter() - start,
    )

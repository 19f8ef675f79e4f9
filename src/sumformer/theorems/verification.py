"""verify(dir): integrity, an independent proof, then an attack. The certificate stands only if all three agree."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.targets.opaque import OpaqueTarget

if TYPE_CHECKING:
    from sumformer.certificates.attack import AttackResult
    from sumformer.certificates.checker import Verification
    from sumformer.certificates.quadrature import Quadrature
    from sumformer.theorems.constructed import Construction


@dataclass(frozen=True)
class Verdict:
    """The claim, what the checker recomputed of it, and what the attack found.

    `refuted` if its error exceeds the claim, or is none.
    """

    certificate: Certificate
    proof: Verification
    attack: AttackResult | Quadrature | None  # d_p is measured rather than attacked
    refuted: bool
    seconds: float

    @property
    def verified(self) -> bool:
        return self.proof.verified and not self.refuted

    def __bool__(self) -> bool:
        return self.verified


def examine(construction: Construction, claimed: float) -> tuple[AttackResult | Quadrature, bool]:
    """The worst error an attack finds, or d_p by quadrature, and whether it refutes the claim."""
    from sumformer.certificates.attack import attack, violation
    from sumformer.certificates.quadrature import quadrature

    target, network, p = construction.target, construction.network, construction.certificate.p
    if p is not None:
        measured = quadrature(target, network, p)
        return measured, measured.refutes(claimed)
    found = attack(target, network)
    if isnan(found.worst):  # f is no number wherever it was evaluated: there is nothing to be near to
        return found, True
    return found, found.worst > claimed and violation(found, claimed)[0]


def _by_name_only(target: object) -> bool:
    """Whether the folder keeps only the name of a function without a formula, which then cannot be attacked."""
    return isinstance(target, OpaqueTarget) and target.function is None


def verify(directory: str | Path, *, attack: bool = True) -> Verdict:
    """Re-derive the bound from the saved weights without the constructor's code, then try to break it."""
    from sumformer.certificates.checker import check
    from sumformer.theorems.construction import load

    start = time.perf_counter()
    proof = check(directory)
    found: AttackResult | Quadrature | None = None
    refuted = False
    construction = load(directory) if attack and proof.verified else None
    if construction is not None and not _by_name_only(construction.target):
        found, refuted = examine(construction, proof.claimed)
    certificate = Certificate.read(Path(directory) / CERTIFICATE_FILE)
    return Verdict(certificate, proof, found, refuted, time.perf_counter() - start)

"""verify(dir): integrity, an independent proof, then an attack. The certificate stands only if all three agree."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sumformer.certificates.attack import AttackResult
    from sumformer.certificates.checker import Verification


@dataclass(frozen=True)
class Verdict:
    """What the checker recomputed, and what the attack found: `refuted` if its error exceeds the claim."""

    proof: Verification
    attack: AttackResult | None
    refuted: bool
    seconds: float

    @property
    def verified(self) -> bool:
        return self.proof.verified and not self.refuted

    def __bool__(self) -> bool:
        return self.verified


def verify(directory: str | Path, *, attack: bool = True) -> Verdict:
    """Re-derive the bound from the saved weights without the constructor's code, then try to break it."""
    from sumformer.certificates.attack import attack as run_attack
    from sumformer.certificates.attack import violation
    from sumformer.certificates.checker import check
    from sumformer.theorems.construction import load

    start = time.perf_counter()
    proof = check(directory)
    found, refuted = None, False
    if attack and proof.verified:
        construction = load(directory)
        found = run_attack(construction.target, construction.network)
        refuted = found.worst > proof.claimed and violation(found, proof.claimed)[0]
    return Verdict(proof, found, refuted, time.perf_counter() - start)

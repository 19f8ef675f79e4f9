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
    """What the checker recomputed and what the attack found."""

    proof: Verification
    attack: AttackResult | None
    seconds: float

    @property
    def refuted(self) -> bool:
        """The attack found an input whose error exceeds the claim."""
        return self.attack is not None and self.attack.refutes(self.proof.claimed)

    @property
    def verified(self) -> bool:
        return self.proof.verified and not self.refuted

    def __bool__(self) -> bool:
        return self.verified


def verify(directory: str | Path, *, attack: bool = True) -> Verdict:
    """Re-derive the bound from the saved weights without the constructor's code, then try to break it."""
    from sumformer.certificates.attack import attack as run_attack
    from sumformer.certificates.checker import check
    from sumformer.theorems.construction import load

    start = time.perf_counter()
    proof = check(directory)
    found = None
    if attack and proof.verified:
        construction = load(directory)
        found = run_attack(construction.target, construction.network)
    return Verdict(proof, found, time.perf_counter() - start)

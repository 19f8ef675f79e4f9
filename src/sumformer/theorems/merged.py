"""Σ of one part of the tokens, or of parts put together, with what its certificate has to say of it."""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.certificates.certificate import Certificate
from sumformer.errors import InputError
from sumformer.nn.summary import Summary


@dataclass(frozen=True)
class PartialSum:
    """`state` = Σ over tokens that were checked, of parts that were merged `depth` deep; + merges two.

    It can be sent to another process that has loaded the same folder.
    """

    state: Summary
    certificate: Certificate
    depth: int = 0

    def __radd__(self, start: int) -> PartialSum:
        """So that Python's sum(parts), which begins with 0, merges them one after another."""
        return self if isinstance(start, int) and start == 0 else NotImplemented

    def __add__(self, other: PartialSum) -> PartialSum:
        if not isinstance(other, PartialSum) or other.certificate != self.certificate:
            raise InputError(
                "expected another summary of the same construction; those of another have other features "
                "(one that was saved is that of its files: load them in every process)"
            )
        batches = {len(part.state.total) for part in (self, other)} - {1}
        if len(batches) > 1:
            raise InputError(f"expected summaries of one sequence, or of as many sequences, got {sorted(batches)}")
        depth = 1 + max(self.depth, other.depth)
        if depth > self.certificate.merges:
            raise InputError(
                f"this construction is certified for summaries merged {self.certificate.merges} deep, not {depth}: "
                "construct with merges=…, or merge in pairs, which is only as deep as log2 of the number of parts"
            )
        return PartialSum(self.state + other.state, self.certificate, depth)

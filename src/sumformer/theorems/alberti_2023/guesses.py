"""An ε to try where one is refused: a guess, said as one, and none that every network meets, 0 among them."""

from __future__ import annotations

import torch

from sumformer.targets.target import Target

GUESS = "at a guess, ε ≈ "
NONE = "no useful ε is reachable"
_SETS, _FEW = 256, 4


def at_a_guess(epsilon: float | None) -> list[str]:
    """The guess in words; who tries it leaves them out, for what was found."""
    return [NONE if epsilon is None else f"{GUESS}{epsilon:.2g} could be reached"]


def useful(epsilon: float, target: Target) -> float | None:
    """`epsilon`, if it is smaller than the largest |f| seen at random tokens of the box."""
    box, n = target.input_box, min(max(target.tokens.minimum, _FEW), target.tokens.maximum)
    if n > 64 * _FEW:
        return epsilon
    low, high = (torch.tensor([float(v) for v in ends], dtype=torch.float64) for ends in (box.lower, box.upper))
    share = torch.rand(_SETS, n, box.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = target(low + (high - low) * share).abs()
    seen = seen[seen.isfinite()]
    return epsilon if not seen.numel() or epsilon < float(seen.max()) else None

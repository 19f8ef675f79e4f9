"""Where an ε is refused: another to try, said as a guess and none that 0 meets, and what else may be changed."""

from __future__ import annotations

from math import inf

import torch

from sumformer.algebra.rounding import shown_up
from sumformer.targets import Binary, Node, Power, Unary, postorder, reductions
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic

GUESS = "at a guess, ε ≈ "
NONE = "no useful ε is reachable"
FEW_TOKENS = 1000
_SETS, _FEW = 256, 4


def at_a_guess(epsilon: float | None) -> list[str]:
    """The guess in words; who tries it leaves them out, for what was found."""
    return [NONE if epsilon is None else f"{GUESS}{shown_up(epsilon, 2)} could be reached"]


def useful(epsilon: float, target: Target) -> float | None:
    """`epsilon`, if it is finite and smaller than the largest |f| seen at random tokens of the box."""
    if epsilon == inf:
        return None
    box, n = target.input_box, min(max(target.tokens.minimum, _FEW), target.tokens.maximum)
    if n > 64 * _FEW:
        return epsilon
    low, high = (torch.tensor([float(v) for v in ends], dtype=torch.float64) for ends in (box.lower, box.upper))
    share = torch.rand(_SETS, n, box.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = target(low + (high - low) * share).abs()
    seen = seen[seen.isfinite()]
    return epsilon if not seen.numel() or epsilon < float(seen.max()) else None


def advice_for(target: Target, arithmetic: Arithmetic, own_token: bool) -> list[str]:
    """What to change about it, where that is known."""
    out = []
    if arithmetic.name == "float32":
        out.append("dtype='mixed' keeps float32 in and out and computes in float64")
    found = [part for part in map(_divisor, postorder(target.expression)) if part is not None]
    divisors = [part for part in found if reductions(part)]
    if any(r.kind.endswith("others") for part in divisors for r in reductions(part)):
        out.append(
            "keep what is divided by, or under log, away from 0: by an offset, or by sum and mean over all tokens"
        )
    elif divisors and own_token and target.tokens.maximum > FEW_TOKENS:
        out.append(f"fewer tokens would help (--tokens ..{FEW_TOKENS}): the own one is then more of what is divided by")
    return out


def _divisor(part: Node) -> Node | None:
    """What must not come near 0."""
    match part:
        case Binary("/", _, divisor) | Unary("log", divisor):
            return divisor
        case Power(divisor, k) if k < 0:
            return divisor
    return None

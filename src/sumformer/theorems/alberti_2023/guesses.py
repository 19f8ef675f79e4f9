"""Where an ε is refused: another to try, said as a guess and none that 0 meets, and what else may be changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

import torch

from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import shown_up
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Binary, Node, Power, Unary, postorder, reductions
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.ranges import reduction_ranges

GUESS = "at a guess, ε ≈ "
NEAREST = "nearest: ε = "
NONE = "no useful ε is known to be reachable"
FEW_TOKENS = 1000
_SETS, _FEW, _MANY, _PAIRS = 256, 4, 512, 2**21  # sets of tokens that are looked at, and pairs of tokens at a time
_CLOSEST = 12  # clusters reach over 2⁰, 2⁻¹, … of the box


class ReachedError(RefusedError):
    """A refusal whose `reachable` was tried: the route has a plan that meets it."""


def reached(message: str, needs: Sequence[str], epsilon: float | None, more: Sequence[str]) -> RefusedError:
    """What is needed, the ε that was met by trying, what else may be changed."""
    if epsilon is None:
        return RefusedError(message, [*needs, NONE, *more])
    return ReachedError(message, [*needs, f"{NEAREST}{shown_up(epsilon, 2)}, which was tried", *more], epsilon)


def unnamed(line: str) -> str:
    """Reasons in one line without the ε that they name, for those who name another."""
    return re.sub(rf"; ({GUESS}|{NEAREST})[^;]*", "", line)


def at_a_guess(epsilon: float | None) -> list[str]:
    """The guess in words; who tries it leaves them out, for what was found."""
    return [NONE if epsilon is None else f"{GUESS}{shown_up(epsilon, 2)} could be reached"]


def useful(epsilon: float, target: Target) -> float | None:
    """`epsilon`, if it is finite and smaller than |f| may be, and than the largest |f| seen where that tells enough."""
    if epsilon == inf or epsilon >= _enclosed(target):
        return None
    fewest, most = target.tokens.minimum, target.tokens.maximum
    if fewest > _MANY:
        return epsilon
    grows = any(r.kind in ("sum", "sum_others") for r in reductions(target.countless))
    seen = max(_seen(target, n) for n in {min(max(fewest, _FEW), most), min(most, _MANY if grows else 8 * _FEW)})
    return epsilon if epsilon < seen * (max(most / _MANY, 1.0) if grows else 1.0) else None


def _enclosed(target: Target) -> float:
    """A bound of |f|; ∞ where none was found."""
    cells = Cells(target.box)
    try:
        ranges = reduction_ranges(target.countless, cells, target.tokens)
    except DomainError:
        return inf
    value = evaluate(target.countless, IntervalOperations(), Environment(x=cells.x, reduce=ranges.__getitem__))
    return float(value.abs_upper().max())


def _seen(target: Target, n: int) -> float:
    """The largest |f| at n random tokens, and where all but one lie close together, near it or at it; ∞ where none is.

    Kernels with a peak are seen at their largest there.
    """
    box = target.input_box
    sets = max(4, min(_SETS, _PAIRS // n**2))
    low, high = (torch.tensor([float(v) for v in ends], dtype=torch.float64) for ends in (box.lower, box.upper))
    generator = torch.Generator().manual_seed(0)
    share = torch.rand(sets, n, box.d, dtype=torch.float64, generator=generator)
    own, other = share[:, :1], share[:, 1:2] if n > 1 else share[:, :1]
    number = torch.arange(sets).view(-1, 1, 1)
    along = (number % 2 == 0) | (torch.arange(box.d) == number // 2 % box.d)  # every second set: one coordinate only
    apart = (own + (other - own) * along * torch.exp2(-(number // 2 % _CLOSEST).double())).expand(-1, n - 1, -1)
    trials = (share, own.expand(-1, n, -1), torch.cat([own, apart], dim=1))
    values = [target(low + (high - low) * trial).abs() for trial in trials]
    seen = torch.cat([value[value.isfinite()] for value in values])
    return float(seen.max()) if seen.numel() else inf


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

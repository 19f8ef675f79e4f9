"""Step 3, driven: B' in three parts, remainder | stored numbers | rounding, as differences of three passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.axes import most_axes
from sumformer.certificates.checker.bound import bound
from sumformer.certificates.checker.cells import Cells, cells_per_axis
from sumformer.certificates.checker.network import Network
from sumformer.certificates.checker.proof import Pass, Setting
from sumformer.certificates.checker.verdict import claim_failures, claims
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Tokens

BUDGETS = (40_000, 600_000)  # cells of the largest array: the second only where the first does not suffice

HOPELESS = 2.0  # B' over the claim, beyond which finer cells are not tried

Parts = tuple[float, float, float]


@dataclass(frozen=True)
class Errors:
    """For each kernel the remainder and e_g in all, for each product the mass that it leaves out; for each kernel the
    remainder and e_g as shares of K, where they are known."""

    remainders: tuple[float, ...]
    totals: tuple[float, ...]
    left_out: tuple[float, ...]
    remainder_shares: tuple[float, ...] = ()
    total_shares: tuple[float, ...] = ()


def propagated(claim: float, net: Network, on_cells: Callable[[Cells], Setting], errors: Errors) -> Parts:
    """The three parts of B', on cells as fine as the claim asks for."""
    parts: Parts = (math.inf, math.inf, math.inf)
    for budget in BUDGETS:
        setting = on_cells(Cells(net, cells_per_axis(budget, most_axes(net))))
        try:
            parts = _parts(setting, errors)
        except Unproved:
            if budget == BUDGETS[-1]:
                raise
        if not claim < math.fsum(parts) < HOPELESS * claim and math.fsum(parts) < math.inf:
            break  # enough, or too far off for finer cells to help
    return parts


def part_failures(c: Certificate, names: tuple[str, ...], parts: Parts) -> list[str]:
    """Terms of which far more is found than claimed, and the total."""
    found = dict(zip(names, parts, strict=True))
    return claim_failures(c, claims(c), found, lambda _, claim: 2 * claim + 1e-6 * c.total)


def _parts(setting: Setting, errors: Errors) -> Parts:
    """B' with the remainder alone, then with the stored numbers, then with rounding; as differences."""
    net, left_out = setting.net, errors.left_out
    exact, rounded = Arithmetic.exact(), Arithmetic.named(net.arithmetic)
    first = second = third = 0.0
    for piece in token_pieces(net, setting.tokens):
        part = replace(setting, tokens=piece)
        remainder = Pass(part, exact, errors.remainders, (0.0,) * len(left_out), errors.remainder_shares)
        whole = Pass(part, exact, errors.totals, left_out, errors.total_shares)
        first = max(first, bound(remainder))
        second = max(first, second, bound(whole))
        third = max(second, third, bound(replace(whole, arithmetic=rounded)))
    return first, second - first, math.nextafter(third - second, math.inf) if third > second else 0.0


def token_pieces(net: Network, tokens: Tokens) -> list[Tokens]:
    """The numbers of tokens in pieces [m, 2m] where the target has true sums: their size and error grow with n."""
    if not any(r.node.kind in ("sum", "sum_others") for r in net.reductions):
        return [tokens]
    pieces, low = [], tokens.minimum
    while low <= tokens.maximum:
        pieces.append(Tokens(low, min(2 * low, tokens.maximum)))
        low = 2 * low + 1
    return pieces

"""What the layers of Clenshaw's rule add in all: the saws' errors, and every rounding of float64 on its way to p.

Of one step: Σ r over its layers, 64u of its constants, and of its saws' workspace Σ_k q M^{−2k} R_k, q = 4AB,
R_{k+1} = (M + 1) R_k + r.
"""

from __future__ import annotations

from math import inf

from sumformer.gadgets.clenshaw_stages import Placed, Stages
from sumformer.gadgets.rounding import U, stage_rounding
from sumformer.gadgets.square import MARGIN


def proved(stages: Stages) -> float:
    """A bound of |network − p| over all arguments |t| ≤ 1 + e_t; ∞ where a step adds more than its ranges allow for."""
    added = roundings(stages)
    own = {}
    for p in stages.placed:
        total = (p.error + _rounding(p, added)) * (1 + 2.0**-40)
        if not total <= p.step.own:
            return inf
        own[p.step.j, p.step.r] = total
    if not stages.s.rule.f.J:
        own[0, 0] = added[-1][stages.place]
    return stages.s.rule.bounds(own).total


def roundings(stages: Stages) -> list[dict[str, float]]:
    """By layer and place; the first layer's is the argument's, e_t."""
    rule, bounds, f = stages.s.rule, stages.bounds, stages.s.rule.f
    top = 1.01 + rule.beyond + rule.e_t + max(bounds.T.values(), default=0.0)
    saws = dict.fromkeys(stages.workspace, 1.01)
    value = [abs(row[0]) + b for row, b in zip(f.d, bounds.b, strict=True)]
    parts = [top * sum(map(abs, row)) for row in f.d]
    read = [saws | {stages.T(r): top for r in (1, *rule.T)} for _ in stages.stages]
    written = [saws | {stages.T(r): 5 * top**2 for r in rule.T} for _ in stages.stages]  # 2T² and T², partial
    for p in stages.placed:
        j, A = p.step.j, p.step.A
        for k in range(p.first, p.last) if j >= 0 else ():
            written[k][p.place] = 2 * (value[j] + A * value[j + 1] + parts[j])
            if j + 2 <= f.J:
                written[k][p.place] += 2 * (value[j + 2] + parts[j + 2])
            for i in {j + 1, 2} if j == 0 and f.J > 2 else {j + 1}:
                read[k][stages.b(i)[0]] = value[i]
    written[-1].setdefault(stages.place, 2 * parts[0])  # the tree alone
    return [{}, *map(stage_rounding, stages.stages[1:], read[1:], written[1:])]


def _rounding(p: Placed, added: list[dict[str, float]]) -> float:
    s = p.step
    total = sum(added[k].get(p.place, 0.0) for k in range(p.first, p.last)) + 64 * U * s.size
    for name in p.workspace:
        R = max(layer.get(name, 0.0) for layer in added)  # what an earlier step left
        for k in range(1, s.shape.layers):
            R = (R if k == 1 else (s.shape.pieces + 1) * R) + added[p.first + k - 1].get(name, 0.0)
            total += 4 * s.A * s.B * 1.01 * float(s.shape.pieces) ** (-2 * k) * R
        if not MARGIN > R:
            return inf
    return total

"""Step 3 where the certificate says that x is among the tokens summed: then a sum of positive terms has a term at x.

mean_j e(x, x_j) = (e(x, x) + Σ over the others)/n, and for b > 0, K ≥ 0 with the own term apart
Σ_j b_j K_j ≥ b(x) K(x, x) + K_min Σ_others b_j = K_min Σ_j b_j + b(x) (K(x, x) − K_min)
Σ_j b_j     ≤ b(x) + (n − 1) b_max
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, meet
from sumformer.certificates.checker.network import Term
from sumformer.certificates.checker.proof import Pass, Setting
from sumformer.certificates.checker.tree_values import Leaf, components
from sumformer.targets.domain import Tokens
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Reduce, Token
from sumformer.targets.walk import substitute


def at_own(node: Node, setting: Setting, reduced: Leaf[Interval] | None = None) -> list[Interval]:
    """The coordinates of e(x, x) on the cells of x; u − v is 0 where both are the same once y is x."""
    ops = IntervalOperations()
    own: dict[Node, Node] = {Token("y", setting.net.d): Token("x", setting.net.d)}

    def leaf(part: Node) -> list[Interval] | None:
        if isinstance(part, Token):
            return setting.x
        if isinstance(part, Reduce):
            return None if reduced is None else reduced(part)
        if isinstance(part, Binary) and part.op == "-" and substitute(part.left, own) == substitute(part.right, own):
            return [ops.const(Fraction(0))] * part.width
        return None

    return components(node, ops, leaf)


def least_share(p: Pass, term: Term, b_most: float) -> Floats:
    """κ with Σ_j b_j K_j ≥ κ Σ_j |b_j| on the cells of x, for b of one sign and K ≥ 0 on the box."""
    setting = p.setting
    low, own = np.ones(()), np.ones(())
    for g in setting.net.products[term.product].kernels:
        low = low * setting.kernels[g].lo
        own = own * np.maximum(at_own(setting.net.kernels[g].expression, setting)[0].lo, 0.0)
    least: Floats = -setting.cells.max_over_y(-np.asarray(low))
    b = at_own(setting.net.channels[term.channel].factor, setting)[0].mignitude
    share = b / (b + (setting.tokens.maximum - 1) * b_most)
    return (least + np.maximum(setting.cells.spread(own) - least, 0.0) * share) * (1 - 1e-12)


def mean_with_own(others: Interval, own: Interval, tokens: Tokens) -> Interval:
    """Where a mean of up to n tokens lies, if its terms lie in `others` and the own one, 1/n of it, in `own`."""
    ops, own = IntervalOperations(), meet(own, others)
    share = ops.div(ops.const(Fraction(1)), ops.const(Fraction(tokens.maximum)))
    low, high = Interval(others.lo, others.lo), Interval(others.hi, others.hi)
    least = ops.add(low, ops.mul(ops.sub(own, low), share)).lo
    most = ops.sub(high, ops.mul(ops.sub(high, own), share)).hi
    return meet(Interval(least, most), others)


def sum_with_own(others: Interval, own: Interval, tokens: Tokens) -> Interval:
    """The own term and n − 1 others."""
    ops = IntervalOperations()
    rest = Interval(np.asarray(float(tokens.minimum - 1)), np.asarray(float(tokens.maximum - 1)))
    return ops.add(meet(own, others), ops.mul(rest, others))

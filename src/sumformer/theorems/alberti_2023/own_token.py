"""x_i is among the tokens summed: a sum of positive terms is at least its own one, however far away the others are.

  mean_j e(x, x_j)               = e(x, x)/n + (1 − 1/n) · (a mean over the others)
  Σ_j b_j K(x, x_j) / Σ_j b_j    ≥ K_min + (K(x, x) − K_min) · b(x)/(b(x) + (n − 1) b_max)      for b > 0, K ≥ 0

So exp(−s‖x−y‖²) normalised over n ≤ N tokens is divided by 1/N at least, where K_min alone may be e^{−100}. What is
proved with it holds for queries that are among the sources, which the certificate then says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.tracked import INFLATE
from sumformer.targets import Binary, Node, Reduce, Token, postorder, substitute
from sumformer.targets.domain import Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.cells import Cells


def at_own(node: Node, cells: Cells, reduce: Callable[[Reduce], Interval] | None = None) -> Interval:
    """e(x, x) over the x-cells, (cells, width): y is x, so that x − y is 0."""
    d = cells.box.d
    node = substitute(node, {Token("y", d): Token("x", d)})
    zeros: dict[Node, Interval] = {
        part: Interval.point(np.zeros((1, part.width)))
        for part in postorder(node, into_reductions=False)
        if isinstance(part, Binary) and part.op == "-" and part.left == part.right
    }
    value = evaluate(node, IntervalOperations(), Environment(x=cells.x, reduce=reduce), zeros)
    return value.broadcast_to((cells.x.shape[0], node.width))


def with_own(kind: str, others: Interval, own: Interval, tokens: Tokens) -> Interval:
    """The range of a sum or a mean whose terms lie in `others`, the own one in `own`."""
    own = own.intersect(others)
    if kind == "sum":
        return own + others * Interval(float(tokens.minimum - 1), float(tokens.maximum - 1))
    if not bool(np.all(np.isfinite(others.lo) & np.isfinite(others.hi))):
        return others
    share = Interval(1.0, 1.0) / float(tokens.maximum)  # at least this much of the mean is the own term
    low, high = Interval.point(others.lo), Interval.point(others.hi)
    least, most = low + (own - low) * share, high - (high - own) * share
    return Interval.sealed(least.lo, most.hi, own.defined & others.defined).intersect(others)


def least_share(kernels: Iterable[Node], channel: Node, least: float, largest: float, cells: Cells, n: int) -> float:
    """A lower bound of Σ b K / Σ b over up to n tokens, the own one among them; K ≥ `least` ≥ 0, b ≤ `largest`."""
    own, b = 1.0, float(at_own(channel, cells).lo.min())
    for kernel in kernels:
        own *= float(at_own(kernel, cells).lo.min()) / INFLATE
    if not (b > 0 and own > least):
        return least
    return (least + (own - least) * b / (b + (n - 1) * largest) / INFLATE) / INFLATE

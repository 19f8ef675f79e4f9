"""Where the exact values lie, over cells of x: the hull of a body over all y holds every mean of it.

This comes before any heavy work: a target that may leave its domain on the box is refused here, by the sub-expression.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.errors import UndefinedError
from sumformer.targets import Binary, Node, Power, Reduce, Unary, postorder, reductions, to_source
from sumformer.targets.domain import Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.own_token import at_own, with_own


def reduction_ranges(
    expression: Node, cells: Cells, tokens: Tokens, own_token: bool = False
) -> Mapping[Reduce, Interval]:
    """The range of every reduction over the x-cells, (cells, width); raises where the expression may be undefined.

    With `own_token`, x itself is known to be among the tokens that a sum or mean runs over.
    """
    found: dict[Reduce, Interval] = {}
    for reduction in reductions(expression):
        mean = _body_range(reduction, cells, found)
        if own_token and reduction.kind in ("sum", "mean"):
            own = at_own(reduction.body, cells, found.__getitem__)
            found[reduction] = with_own(reduction.kind, mean, own, tokens)
        else:
            found[reduction] = _over_tokens(reduction.kind, mean, tokens)
    environment = Environment(x=cells.x, reduce=found.__getitem__)
    if not bool(np.all(evaluate(expression, IntervalOperations(), environment).defined)):
        raise _culprit(expression, environment, cells)
    return found


def _body_range(reduction: Reduce, cells: Cells, known: Mapping[Reduce, Interval]) -> Interval:
    def inner(node: Reduce) -> Interval:
        return Interval(known[node].lo[:, None], known[node].hi[:, None])

    x, y = cells.x[:, None], cells.y[None, :]
    environment = Environment(x=x, y=y, reduce=inner)
    body = evaluate(reduction.body, IntervalOperations(), environment)
    if not bool(np.all(body.defined)):
        raise _culprit(reduction.body, environment, cells)
    body = body.broadcast_to((x.shape[0], y.shape[1], reduction.width))
    return Interval(body.lo.min(axis=1), body.hi.max(axis=1))


def _over_tokens(kind: str, mean: Interval, tokens: Tokens) -> Interval:
    if kind == "sum":
        return mean * Interval(float(tokens.minimum), float(tokens.maximum))
    if kind == "sum_others":
        return mean * Interval(float(tokens.minimum - 1), float(tokens.maximum - 1))
    return mean


def _culprit(expression: Node, environment: Environment[Interval], cells: Cells) -> UndefinedError:
    """The first sub-expression that may be undefined, and where its argument lies."""
    for part in postorder(expression, into_reductions=False):
        value = evaluate(part, IntervalOperations(), environment)
        if bool(np.all(value.defined)):
            continue
        source, where = to_source(part), None
        if isinstance(part, Unary) or (isinstance(part, Binary) and part.op == "/"):
            argument = part.arg if isinstance(part, Unary) else part.right
            at = evaluate(argument, IntervalOperations(), environment)
            where = (float(at.lo.min()), float(at.hi.max()))
            what = f"{to_source(argument)} lies in [{where[0]:.4g}, {where[1]:.4g}]; {_advice(argument, where[0])}"
            return UndefinedError(f"{source} may leave its domain on the box {cells.box}: {what}", source, where)
        return UndefinedError(f"{source} may leave its domain on the box {cells.box}", source, where)
    raise AssertionError("an undefined expression has an undefined part")


def _advice(argument: Node, least: float) -> str:
    """What a user may do about it: an offset helps where the argument is not far below 0."""
    for part in postorder(argument):
        match part:
            case Binary("-", Reduce("mean", Power(e, 2) | Binary("*", e, _) as square), Power(Reduce("mean", f), 2)):
                if e == f and square in (Power(e, 2), Binary("*", e, e)):
                    return f"write mean(({to_source(e)} - mean({to_source(e)}))**2), which is known not to be negative"
    if least < -1e-6:
        return f"keep it away from 0 by another box, or take its square, as ({to_source(argument)})**2 + 0.01"
    return f"keep it away from 0 by an offset, as {to_source(argument)} + 0.01, or by another box"

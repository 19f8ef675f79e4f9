"""The functions of the language for Python: mean(exp(-norm2(x - y))*y) builds the tree that the same source parses to.

Names that Python already uses end in an underscore: `sum_`, `max_`, `min_`, `abs_`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from sumformer.errors import TargetError
from sumformer.targets.arithmetic import as_node
from sumformer.targets.calls import build_call
from sumformer.targets.node import Node, Scalar
from sumformer.targets.tree import Token


def from_lambda(fn: Callable[[Node, Node], Scalar], d: int) -> Node:
    """The tree that `fn` builds from the own token x and another token y, both of width d."""
    x, y = Token("x", d), Token("y", d)
    if not _takes(fn, x, y):
        raise TargetError("expected a function of (x, y) that builds a formula; one of tensors needs lipschitz=…")
    value = fn(x, y)
    try:
        return as_node(value)
    except TargetError as error:
        raise TargetError(f"the function of x and y returned no expression: {error.reason}") from None


def _takes(fn: Callable[..., object], *arguments: Node) -> bool:
    """Whether the signature has places for them, where it is known."""
    try:
        signature(fn).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a built-in function need not have one
        return True
    return True


def _call(name: str, *arguments: Scalar) -> Node:
    return build_call(name, [as_node(a) for a in arguments])


def exp(v: Scalar) -> Node:
    """e^v by coordinate."""
    return _call("exp", v)


def log(v: Scalar) -> Node:
    """log v by coordinate, v > 0."""
    return _call("log", v)


def sqrt(v: Scalar) -> Node:
    """√v by coordinate, v ≥ 0."""
    return _call("sqrt", v)


def sin(v: Scalar) -> Node:
    """sin v by coordinate."""
    return _call("sin", v)


def cos(v: Scalar) -> Node:
    """cos v by coordinate."""
    return _call("cos", v)


def tanh(v: Scalar) -> Node:
    """tanh v by coordinate."""
    return _call("tanh", v)


def sigmoid(v: Scalar) -> Node:
    """1/(1 + e^{−v}) by coordinate."""
    return _call("sigmoid", v)


def abs_(v: Scalar) -> Node:
    """|v| by coordinate; Python's own abs(v) does the same."""
    return _call("abs", v)


def sum_(e: Scalar) -> Node:
    """Σ_j e(x_i, x_j), the own token included."""
    return _call("sum", e)


def mean(e: Scalar) -> Node:
    """(1/n) Σ_j e(x_i, x_j), the own token included."""
    return _call("mean", e)


def sum_others(e: Scalar) -> Node:
    """Σ_{j≠i} e(x_i, x_j)."""
    return _call("sum_others", e)


def mean_others(e: Scalar) -> Node:
    """(1/(n−1)) Σ_{j≠i} e(x_i, x_j), n ≥ 2."""
    return _call("mean_others", e)


def max_(*arguments: Scalar) -> Node:
    """max_j e(x_i, x_j) of one argument, max(u, v) by coordinate of two."""
    return _call("max", *arguments)


def min_(*arguments: Scalar) -> Node:
    """min_j e(x_i, x_j) of one argument, min(u, v) by coordinate of two."""
    return _call("min", *arguments)


def dot(u: Scalar, v: Scalar) -> Node:
    """Σ_c u_c v_c."""
    return _call("dot", u, v)


def norm2(v: Scalar) -> Node:
    """Σ_c v_c², squared."""
    return _call("norm2", v)


def norm(v: Scalar) -> Node:
    """‖v‖, Euclidean."""
    return _call("norm", v)


def total(v: Scalar) -> Node:
    """Σ_c v_c, over coordinates."""
    return _call("total", v)


def cat(*arguments: Scalar) -> Node:
    """(u, v, …): coordinates one after another."""
    return _call("cat", *arguments)

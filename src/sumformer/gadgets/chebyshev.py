"""T_0 = 1, T_1 = t, T_{2k} = 2T_k² − 1, T_{2k+1} = 2T_k T_{k+1} − t, as expressions in x, well conditioned."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce

from sumformer.targets import Const, Node, Token

X = Token("x", 1)


@lru_cache(maxsize=1024)
def chebyshev(k: int) -> Node:
    """T_k."""
    if k == 0:
        return Const(Fraction(1))
    if k == 1:
        return X
    half = chebyshev(k // 2)
    return 2 * half**2 - 1 if k % 2 == 0 else 2 * (half * chebyshev(k // 2 + 1)) - X


def polynomial(coefficients: Sequence[Fraction | float]) -> Node:
    """Σ_k c_k T_k; a function of one number, for `function` to approximate."""
    parts = [Const(Fraction(c)) * chebyshev(k) for k, c in enumerate(coefficients)]
    return reduce(lambda a, b: a + b, parts)

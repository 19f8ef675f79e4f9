"""S_k^1 = A_k^0,   S_k^t = ∪_{j ∈ A_k^{(t−1) mod p}} S_j^{t−1};   reach = the least s with S_k^s = [n] for all k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def reach(steps: Sequence[NDArray[np.bool_]]) -> tuple[int | None, str]:
    """The reach, or None and the reason. Sets are rows of bits, joined along the connections."""
    n, p = steps[0].shape[0], len(steps)
    lists = [_lists(matrix) for matrix in steps]
    bits = np.packbits(steps[0], axis=1)
    full = np.packbits(np.ones(n, dtype=np.bool_))
    seen = {bits.tobytes()}
    for t in range(1, 2 * n * p + 1):
        if (bits == full).all():
            return t, ""
        starts, columns = lists[t % p]
        bits = np.bitwise_or.reduceat(bits[columns], starts, axis=0)
        if t % p == 0:  # the same sets at the same point of the cycle: nothing new will come
            if bits.tobytes() in seen:
                break
            seen = {bits.tobytes()}
    k = int(np.flatnonzero((bits != full).any(1))[0])
    missing = int(np.flatnonzero(~np.unpackbits(bits[k], count=n).astype(np.bool_))[0])
    return None, f"token {k} never hears of token {missing}, in any number of steps"


def _lists(matrix: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each token's connections start, and what they are; a token without any hears only itself."""
    rows, columns = np.nonzero(matrix | (np.eye(matrix.shape[0], dtype=np.bool_) & ~matrix.any(1, keepdims=True)))
    return np.searchsorted(rows, np.arange(matrix.shape[0])), columns

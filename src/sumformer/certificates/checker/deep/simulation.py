"""Runs the saved weights on whole numbers, exactly: what does the network write for every choice of cells?

A state is a value with a radius, 0 where float64 arithmetic is exact. Softmax counts as hardmax where every other logit
lies more than 746 below the largest: e^{−746} is 0 in float64. A row for which anything is left open is not `sure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.deep.dyadic import U, affine, lowest, spread
from sumformer.certificates.checker.deep.files import Attention, Floats, Network, Stack

UNDERFLOW = 746.0
LONG = 64  # layers from which a stack is searched rather than run layer by layer
MOST_HITS = 4


@dataclass
class State:
    """z (m, n, D) ± radius, and which of the m inputs are still sure."""

    z: Floats
    radius: Floats
    sure: NDArray[np.bool_]

    def give_up(self, rows: Any) -> None:
        """These inputs (m,), a boolean each, are not proved; they go on as zeros."""
        self.sure = self.sure & ~rows
        self.z, self.radius = self.z.copy(), self.radius.copy()
        self.z[rows], self.radius[rows] = 0.0, 0.0


def simulate(network: Network, start: Floats, skip: int) -> State:
    """From the state behind the first `skip` layers to the last one."""
    state = State(start, np.zeros_like(start), np.ones(len(start), dtype=np.bool_))
    for layer in network.layers[skip:]:
        if isinstance(layer, Attention):
            attend(state, layer)
        elif len(layer.W1) >= LONG:
            look_up(state, layer)
        else:
            for l in range(len(layer.W1)):  # noqa: E741
                step(state, layer, l)
    state.give_up(~(state.radius == 0).all((1, 2)))
    return state


def attend(state: State, layer: Attention) -> None:
    state.give_up(~(state.radius == 0).all((1, 2)))
    (q, eq, _), (k, ek, _), (v, ev, _) = (
        affine(state.z, w, b) for w, b in ((layer.WQ, layer.bQ), (layer.WK, None), (layer.WV, None))
    )
    heads = np.zeros_like(q)
    open_rows = ((eq > 0) | (ek > 0) | (ev > 0)).any((1, 2))
    for h in range(2):
        if np.any(layer.WO[:, h] != 0):
            heads[..., h], unsure = _head(q[..., h], k[..., h], v[..., h], layer.who)
            open_rows |= unsure
    shift, error, _ = affine(heads, layer.WO)
    new, exact = _add(state.z, shift)
    state.z = new
    state.give_up(open_rows | (error > 0).any((1, 2)) | ~exact)


def _head(q: Floats, k: Floats, v: Floats, who: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """The value at the largest logit q_i k_j, and the inputs where softmax may be something else."""
    sign = np.sign(q)[:, :, None]
    keys = np.where(who, sign * k[:, None, :], -np.inf)  # (m, i, j)
    top = keys.max(-1, keepdims=True)
    tied = keys == top
    below = np.where(tied, -np.inf, keys).max(-1)
    gap = np.abs(q) * (top[..., 0] - below - 8 * U * np.abs(k).max(-1, keepdims=True))
    clear = (gap > UNDERFLOW) | (below == -np.inf)
    values = np.where(tied, v[:, None, :], np.nan)
    high, low = np.nanmax(values, -1), np.nanmin(values, -1)
    count = tied.sum(-1)
    # j v for j ≤ count is a float64, or, of 4, 3 v is rounded by less than half of what 4 v is a multiple of
    added = (count <= 4) | (count * np.abs(high) <= 2.0**53 * lowest(high))
    shared = (high == low) & (((count & (count - 1)) == 0) & added | (high == 0))  # a share of 1/2^k is exact
    return high, ~(clear & shared).all(-1)


def step(state: State, layer: Stack, l: int) -> None:  # noqa: E741
    """One layer on all tokens."""
    cut = cut_of(layer, l)
    if cut is not None:  # z + R(−z) = max(z, 0), exactly, whatever z is
        z, radius = state.z[..., cut], state.radius[..., cut]
        state.z, state.radius = state.z.copy(), state.radius.copy()
        state.z[..., cut], state.radius[..., cut] = np.maximum(z, 0.0), np.where(z + radius > 0, radius, 0.0)
        return
    state.z, state.radius = _applied(state.z, state.radius, layer.W1[l], layer.b1[l], layer.W2[l])


def _applied(z: Floats, radius: Floats, w1: Floats, b1: Floats, w2: Floats) -> tuple[Floats, Floats]:
    """z + W₂ R(W₁ z + b₁) ± its error: exactly, or with everything that was off or rounded on the way."""
    t, error, _ = affine(z, w1, b1)
    error = error + spread(radius, w1)
    hidden = np.maximum(t, 0.0)
    reach = np.where(t + error > 0, error, 0.0)
    out, rounded, _ = affine(hidden, w2)
    new, lost = _two_sum(z, out)
    off = rounded + spread(reach, w2) + radius
    return new, np.where((off == 0) & (lost == 0), 0.0, off + 2 * U * np.abs(new))


def cut_of(layer: Stack, l: int) -> int | None:  # noqa: E741
    """The coordinate i for which this layer is z_i ↦ z_i + R(−z_i), or None."""
    used = np.flatnonzero((layer.W2[l] != 0).any(0))
    if len(used) != 1 or layer.b1[l, used[0]] != 0:
        return None
    out, into = layer.W2[l][:, used[0]], layer.W1[l, used[0]]
    places = np.flatnonzero(out)
    if len(places) != 1 or out[places[0]] != 1 or into[places[0]] != -1 or np.count_nonzero(into) != 1:
        return None
    return int(places[0])


def look_up(state: State, layer: Stack) -> None:
    """Many layers that read one form t = wᵀz, each idle for t ≤ its first kink, kinks in decreasing order.

    A token meets the next layer whose first kink lies below its t, in the order of the layers; the rest do nothing.
    """
    w, first = layer.W1[0, 0], -layer.b1.max(1)
    if not bool((w == layer.W1).all() and (first[1:] < first[:-1]).all()):
        for l in range(len(layer.W1)):  # noqa: E741
            step(state, layer, l)
        return
    m, n, width = state.z.shape
    z, radius = state.z.reshape(-1, width).copy(), state.radius.reshape(-1, width).copy()
    after, live = np.zeros(len(z), dtype=np.int64), np.arange(len(z))
    ascending, lost = first[::-1], np.zeros(len(z), dtype=np.bool_)
    for _ in range(MOST_HITS):
        t, error, _ = affine(z[live], w[None, :])
        high = t[:, 0] + error[:, 0] + spread(radius[live], w[None, :])[:, 0]
        earliest = len(first) - np.searchsorted(ascending, high, side="left")
        met = np.maximum(after[live], earliest)
        live, met = live[met < len(first)], met[met < len(first)]
        if not len(live):
            break
        z[live], radius[live] = _each(z[live], radius[live], layer, met)
        after[live] = met + 1
    else:
        lost[live] = True
    state.z, state.radius = z.reshape(m, n, width), radius.reshape(m, n, width)
    state.give_up(lost.reshape(m, n).any(1))


def _each(z: Floats, radius: Floats, layer: Stack, l: NDArray[np.int64]) -> tuple[Floats, Floats]:  # noqa: E741
    """Layer l_i on token z_i; tokens of one layer together, for their grain."""
    new, off = np.empty_like(z), np.empty_like(z)
    order = np.argsort(l, kind="stable")
    starts = np.flatnonzero(np.diff(l[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        at = int(l[group[0]])
        new[group], off[group] = _applied(z[group], radius[group], layer.W1[at], layer.b1[at], layer.W2[at])
    return new, off


def _add(a: Floats, b: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """a + b, and for which inputs it is exact."""
    total, error = _two_sum(a, b)
    return total, (error == 0).all((1, 2))


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """fl(a + b) and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)

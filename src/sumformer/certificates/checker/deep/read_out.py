"""What any input of the box can become: a crude bound on |z| through all layers, then the range the last stack cuts to.

Heads give mixtures of ids, as long as no score q·k overflows: the softmax of ∞ is no number. A token-wise layer adds
φ(t)w, bounded by its values at the kinks and its slopes beyond, and the rounding of its four units. A cut
z ↦ z + R(low − z) − R(z − high) lands in [low, high] up to a rounding of |z|.
"""

from __future__ import annotations

import numpy as np

from sumformer.certificates.checker.deep.dyadic import FLOOR, U
from sumformer.certificates.checker.deep.files import Attention, Floats, Network, Stack
from sumformer.certificates.checker.verification import Unproved

HUGE = 1e300
HUGEST_SCORE = 1e308


def output_range(network: Network, cells: int) -> tuple[Floats, Floats]:
    """Low and high of every output, for every input whose entries lie in [0, cells] after the embedding."""
    if not network.layers or not isinstance(network.layers[-1], Stack):
        raise Unproved("the network does not end with a stack that cuts its outputs")
    size = np.full(network.width, float(cells) + 1)
    size[network.d :] = 0.0
    for layer in network.layers[:-1]:
        size = _after_attention(size, layer, network.n) if isinstance(layer, Attention) else _after_stack(size, layer)
        if not bool((size < HUGE).all()):
            raise Unproved("values on ramps cannot be bounded within float64")
    low, high = _cut(size, network.layers[-1])
    out = []
    for row in network.head:
        used = np.flatnonzero(row)
        if len(used) != 1 or row[used[0]] <= 0 or np.frexp(row[used[0]])[0] != 0.5:
            raise Unproved("an output is not one coordinate times a power of two")
        out.append((row[used[0]] * low[used[0]], row[used[0]] * high[used[0]]))
    ends = np.array(out)
    if not bool((np.abs(ends) < HUGE).all()):
        raise Unproved("an output is not cut to a range")
    return ends[:, 0], ends[:, 1]


def _after_attention(size: Floats, layer: Attention, n: int) -> Floats:
    """Also of a head that nothing reads: 0 · ∞ is no number."""
    queries, keys = np.abs(layer.WQ) @ size + np.abs(layer.bQ), np.abs(layer.WK) @ size
    if not bool((queries * keys < HUGEST_SCORE).all()):
        raise Unproved("scores of an attention layer may overflow: its softmax is then no number")
    heads = (np.abs(layer.WV) @ size + FLOOR) * (1 + 1e-9)
    if not bool((4 * n * heads < HUGE).all()):
        raise Unproved("attention: a sum over the tokens may overflow")
    return np.asarray((size + np.abs(layer.WO) @ heads + FLOOR) * (1 + 1e-9))


def _after_stack(size: Floats, stack: Stack) -> Floats:
    for l in range(len(stack.W1)):  # noqa: E741
        w1, b1, w2 = stack.W1[l], stack.b1[l], stack.W2[l]
        reach = _bounded(np.abs(w1) @ size + np.abs(b1) + FLOOR)
        noise = (32 + w1.shape[1]) * U * (np.abs(w2) @ reach) + FLOOR  # the sums are as long as the stream is wide
        size = size + np.minimum(np.abs(w2) @ reach, _profile(w1, b1, w2, size)) + noise
    return np.asarray(size * (1 + 1e-9))


def _bounded(reach: Floats) -> Floats:
    """Of every unit, also of one that writes nothing: 0 · ∞ is no number."""
    if not bool((reach < HUGE).all()):
        raise Unproved("a unit may overflow")
    return reach


def _profile(w1: Floats, b1: Floats, w2: Floats, size: Floats) -> Floats:
    """sup |W₂ R(W₁ z + b₁)| where all units read ±one form: values at the kinks, and slopes to either side."""
    form = w1[0]
    sign = np.array([1.0 if (row == form).all() else -1.0 if (row == -form).all() else 0.0 for row in w1])
    if np.any(sign == 0):
        return np.full(len(size), np.inf)
    kinks = -sign * b1
    values = np.maximum(sign[:, None] * kinks[None, :] + b1[:, None], 0.0)  # unit r at kink s
    at_kinks = np.abs(w2 @ values).max(1)
    right, left = np.abs(w2 @ (sign > 0)), np.abs(w2 @ (sign < 0))
    far = np.abs(form) @ size + np.abs(b1).max()
    return np.asarray((at_kinks + (right + left) * far) * (1 + 1e-9))


def _cut(size: Floats, stack: Stack) -> tuple[Floats, Floats]:
    low, high = -size, size.copy()
    for l in range(len(stack.W1)):  # noqa: E741
        i, a, b = _ends(stack, l)
        _bounded(np.abs(stack.W1[l]) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(stack.b1[l]))
        slack = 8 * U * (max(abs(low[i]), abs(high[i])) + abs(a) + abs(b))
        low[i], high[i] = a - slack, b + slack
    return low, high


def _ends(stack: Stack, l: int) -> tuple[int, float, float]:  # noqa: E741
    """Coordinate, low and high of z_i + R(low − z_i) − R(z_i − high)."""
    used = np.flatnonzero((stack.W2[l] != 0).any(0))
    places = np.flatnonzero((stack.W2[l] != 0).any(1))
    ends = {}
    for r in used:
        into, out = stack.W1[l, r], stack.W2[l][:, r]
        if len(places) == 1 and np.count_nonzero(into) == 1 and into[places[0]] == -out[places[0]] != 0:
            ends[float(out[places[0]])] = float(stack.b1[l, r]) * float(out[places[0]])
    if len(used) != 2 or ends.keys() != {1.0, -1.0} or not ends[1.0] <= ends[-1.0]:
        raise Unproved("a layer of the read-out is not a cut")
    return int(places[0]), ends[1.0], ends[-1.0]

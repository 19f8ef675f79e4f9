"""q P² + l P on [0, 1] by stages: Σ_k G_k(w_k), w_0 = P, w_{k+1} = S_k(w_k), as the weights have it.

With T_0(P) = q P² + l P and T_k(w) = q M^{−2k} (w² − w), the sum telescopes:
  Σ_k G_k(w_k) − T_0(P) = Σ_k D_k(w_k) + Σ_k [T_k(w_k) − T_k(S_{k−1}(w_{k−1}))],  D_k = G_k + T_{k+1}∘S_k − T_k,
T_{k+1} left out in the last stage. G_k and S_k are linear on each piece, so D_k is a parabola there: its ends and
D_k'' h² = 2 q_{k+1} (ΔS)² − 2 q_k h² bound it. What w_k holds besides costs |q_k| |2w − 1| of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sumformer.certificates.checker.compiled.piecewise import Pieces, peak, pieces
from sumformer.certificates.checker.interval import Floats

_U = float(np.finfo(np.longdouble).eps)


@dataclass
class Branch:
    """One saw on its way: w_k ∈ [low, high], what the stages so far err by, and what moved them (two errors)."""

    q: float
    linear: float
    low: float
    high: float
    first: bool = True
    workspace: int = -1
    low_error: float = 0.0
    high_error: float = 0.0
    moved: Floats = field(default_factory=lambda: np.zeros(2))

    def stage(
        self, knots: Floats, shift: float, writes: Floats, saws: Floats | None, last: bool, constant: float
    ) -> tuple[float, float]:
        """One stage on s + shift ∈ [low, high]: sup |G_k| and, if last, what it leaves in the workspace."""
        slack = 4e-16 * (abs(shift) + abs(self.low) + abs(self.high))
        low, high = self.low - shift - slack, self.high - shift + slack
        G = pieces(knots, writes, low, high)
        S = None if saws is None else pieces(knots, saws, low, high)
        q, linear = (self.q, self.linear) if self.first else (self.q, -self.q)
        following = 0.0 if last else self.q / float(len(knots)) ** 2
        found = _defect(G, S, shift, q, linear, following, carried=not self.first)
        self.low_error, self.high_error = self.low_error + found[0], self.high_error + found[1]
        left = 0.0
        if S is not None:
            at = (S.ends + shift) if not self.first else np.zeros(len(S.ends))
            top, bottom = S.hi + at, S.lo + at
            margin = 4e-16 * (1 + float(np.abs(at).max()))
            if last:
                left = float(max(np.abs(top + constant).max(), np.abs(bottom + constant).max())) + margin
            self.low, self.high = float(bottom.min()) - margin, float(top.max()) + margin
        self.q, self.first = following, False
        return G.size, left

    def disturbed(self, error: Floats) -> None:
        """What the workspace holds beside S_k(w_k): rounding, what was there before."""
        reach = max(abs(self.low - 0.5), abs(self.high - 0.5)) + float(error[1])
        self.moved = self.moved + abs(self.q) * 2 * reach * error * (1 + 1e-12)
        self.low, self.high = self.low - float(error[1]), self.high + float(error[1])


def _defect(
    G: Pieces,
    S: Pieces | None,
    shift: float,
    q: float,
    linear: float,
    following: float,
    carried: bool,
) -> tuple[float, float]:
    """[min, max] of G + following (S² − S) − (q P² + l P), P = s + shift; `carried`: S = P + what is written."""
    P = G.ends.astype(np.longdouble) + np.longdouble(shift)
    g, g_error = _middle(G)
    T = q * P * P + linear * P
    D, error = (
        g - T,
        g_error + 8 * _U * np.abs(q * P * P).astype(np.float64) + 8 * _U * np.abs(linear * P).astype(np.float64),
    )
    curvature = -2 * q * np.diff(P) ** 2
    if S is not None and following:
        s, s_error = _middle(S)
        s = s + P if carried else s
        D = D + following * (s * s - s)
        size = np.abs(s).astype(np.float64)
        error = error + abs(following) * ((2 * size + 1) * s_error + s_error**2 + 8 * _U * (size**2 + size))
        rise, off = np.diff(s), s_error[1:] + s_error[:-1]
        curvature = curvature + 2 * following * rise**2
        spread = 2 * abs(following) * (2 * np.abs(rise).astype(np.float64) * off + off**2)
    else:
        spread = np.zeros(len(curvature))
    bend = curvature.astype(np.float64)
    steps = np.diff(G.ends) * (1 + float(np.abs(P).max()))
    spread = (
        spread
        + 64 * _U * abs(q) * steps
        + 1e-15 * np.abs(bend)
        + 16 * _U * abs(q) * np.diff(G.ends) ** 2
        + 64 * _U * abs(following)
    )
    error = error + 8 * _U * np.abs(g).astype(np.float64)
    low, high = D.astype(np.float64) - error, D.astype(np.float64) + error
    below = -peak(-low[:-1], -low[1:], np.maximum(bend + spread, 0.0) / 8)
    above = peak(high[:-1], high[1:], np.maximum(spread - bend, 0.0) / 8)
    return float(below.min()), float(above.max())


def _middle(p: Pieces) -> tuple[np.ndarray, Floats]:
    lo, hi = p.lo.astype(np.longdouble), p.hi.astype(np.longdouble)
    return (lo + hi) / 2, ((hi - lo) / 2).astype(np.float64) * (1 + 1e-12) + 1e-300

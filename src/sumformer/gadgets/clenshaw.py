"""p = Σ q_j(t) T_j(y), y = T_m(t), q_j = Σ_{r<m} d_jr T_r(t): b_j = q_j + 2y b_{j+1} − b_{j+2}, p = q_0 + y b_1 − b_2.

m = 1 is Clenshaw's rule (N products in a row), m > N the tree T_{2k} = 2T_k² − 1, T_{2k+1} = 2T_k T_{k+1} − t alone
(few layers), m ≈ √N takes the fewest products. A step of b_j that errs by δ_j counts as q_j + δ_j, and |T_j| ≤ 1:
errors add up, they do not grow. With e_r the error of T_r and κ_j = max |T_j| on [−1 − e_m, 1 + e_m]:
  |error| ≤ Σ_j κ_j (δ_j + Σ_r |d_jr| e_r + j² e_m max|q_j|),   e_{2k} ≤ 4e_k + 2e_k² + own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import cosh, sqrt

from sumformer.gadgets.saw import Prefer, Shape, choose

WIDER = 1 + 2.0**-40  # of a range, for rounding
RESERVES = (2.0**-49, 2.0**-46, 2.0**-42)  # kept free for rounding, per unit and layer; what is used is checked


@dataclass(frozen=True)
class Folded:
    """d_jr as floats; `error` is what rounding them leaves, `argument` bounds |p'| on [−1, 1]."""

    m: int
    d: tuple[tuple[float, ...], ...]
    error: float
    argument: float

    @property
    def J(self) -> int:
        return len(self.d) - 1

    @property
    def degree(self) -> int:
        return self.J * self.m + max((r for r, w in enumerate(self.d[-1]) if w), default=0)

    def rest(self, j: int) -> float:
        """Σ_{r ≥ 1} |d_jr|."""
        return sum(map(abs, self.d[j][1:]))


def fold(coefficients: Sequence[float], m: int) -> Folded:
    """T_{jm+r} = 2 T_j(y) T_r − T_{jm−r}, from the highest degree down, exactly."""
    c = [Fraction(x) for x in coefficients]
    d = [[Fraction(0)] * m for _ in range((len(c) - 1) // m + 1)]
    for k in range(len(c) - 1, -1, -1):
        j, r = divmod(k, m)
        if j and r:
            d[j][r] = 2 * c[k]
            c[j * m - r] -= c[k]
        else:
            d[j][r] = c[k]
    near = tuple(tuple(float(x) for x in row) for row in d)
    off = sum(abs(Fraction(a) - b) for row, exact in zip(near, d, strict=True) for a, b in zip(row, exact, strict=True))
    return Folded(m, near, float(off) * WIDER, sum(k * k * abs(x) for k, x in enumerate(coefficients)))


@dataclass(frozen=True)
class Step:
    """T_r (j < 0) or b_j (j ≥ 0): a ∈ ±A times b ∈ centre ± B, within `tolerance`, by saws of this shape."""

    j: int
    r: int
    A: float
    centre: float
    B: float
    tolerance: float
    shape: Shape
    own: float
    """What the step may add, rounding included."""

    @property
    def is_square(self) -> bool:
        return self.j < 0 and self.r % 2 == 0

    @property
    def layers(self) -> int:
        return max(1, self.shape.layers)

    @property
    def size(self) -> float:
        """Of the product: what its constants are rounded by, relatively."""
        return self.A * (abs(self.centre) + self.B)


@dataclass(frozen=True)
class Bounds:
    """Bounds that follow from what every step adds: errors of T_r, ranges of b_j − d_j0, the total."""

    T: Mapping[int, float]
    b: tuple[float, ...]
    total: float


def needed(f: Folded) -> list[int]:
    """r ≥ 2 with T_r in some q_j, y itself, and their halves."""
    found: set[int] = set()
    open_ = {r for row in f.d for r, w in enumerate(row) if w and r > 1} | ({f.m} if f.J and f.m > 1 else set())
    while open_:
        r = open_.pop()
        found.add(r)
        open_ |= {h for h in halves(r) if h > 1} - found
    return sorted(found)


def halves(r: int) -> tuple[int, int]:
    return r // 2, (r + 1) // 2


class Rule:
    """The rule for one d, for an argument known to `e_t`, with a `reserve` for rounding."""

    def __init__(self, f: Folded, e_t: float, reserve: float) -> None:
        self.f, self.e_t, self.reserve = f, e_t, reserve
        self.beyond = 2 * e_t * max(f.degree, 1) ** 2  # |T_r(t)| ≤ 1 + this for |t| ≤ 1 + e_t, r ≤ N
        self.valid = self.beyond <= 1.0
        self.T = needed(f)
        self.parts = [[(r, abs(w)) for r, w in enumerate(row) if r > 1 and w] for row in f.d]
        self.rest = [f.rest(j) * (1 + self.beyond) for j in range(f.J + 1)]
        self.whole = [abs(row[0]) + rest for row, rest in zip(f.d, self.rest, strict=True)]
        self.sensitivity = self._sensitivity()

    def _sensitivity(self) -> dict[int, float]:
        """|∂p/∂T_r|, to first order: for the split of the tolerance only."""
        f = self.f
        s = {r: sum(abs(row[r]) for row in f.d if r < f.m) for r in self.T}
        if f.J and f.m > 1:
            s[f.m] = sum(j * j * (abs(row[0]) + f.rest(j)) for j, row in enumerate(f.d))
        for r in reversed(self.T):
            for h in halves(r):
                if h > 1:
                    s[h] += 2 * s[r]
        return s

    def error_of(self, r: int, e: Mapping[int, float]) -> float:
        """What T_r has from its halves."""
        a, b = (e.get(h, 0.0) for h in halves(r))
        return 2 * ((1 + self.beyond) * (a + b) + a * b)

    def bounds(self, own: Mapping[tuple[int, int], float]) -> Bounds:
        """By (j, r) what every step adds; a missing one adds nothing."""
        f = self.f
        e: dict[int, float] = {}
        for r in self.T:
            e[r] = self.error_of(r, e) + own.get((-1, r), 0.0)
        e_y = e.get(f.m, 0.0)
        beyond = e_y + (self.beyond if f.m > 1 else self.e_t)
        kappa = cosh(min(f.J * sqrt(2 * beyond), 300.0)) * WIDER
        steps = [sum(w * e[r] for r, w in row) + own.get((j, 0), 0.0) for j, row in enumerate(self.parts)]
        rest, whole = self.rest, self.whole
        total = sum(kappa * (steps[j] + j * j * e_y * whole[j]) for j in range(f.J + 1))
        ranges = [0.0] * (f.J + 1)
        above, moments = 0.0, 0.0  # Σ_{i>j} of w_i and of w_i (i − j + 1), |U_{i−j}| ≤ i − j + 1
        for j in range(f.J, -1, -1):
            ranges[j] = rest[j] + steps[j] + kappa * moments
            above += whole[j] + steps[j]
            moments += above + whole[j] + steps[j]
        return Bounds(e, tuple(r * (1 + 2.0**-30) for r in ranges), total * (1 + 2.0**-30))

    def steps(self, budget: float, prefer: Prefer) -> tuple[Step, ...] | None:
        """Shapes with a total within the budget: equal shares of it, then as much more as stays within."""
        for more in (6.0, 4.0, 3.0, 2.2, 1.6, 1.2, 0.95, 0.75, 0.5, 0.25):
            found = tuple(self._steps(budget * more / max(1, len(self.T) + self.f.J), prefer))
            if self.bounds({(s.j, s.r): s.own for s in found}).total <= budget:
                return found
        return None

    def reads(self, j: int) -> int:
        """How many numbers step j reads: y, and b_{j+1} or the T_r of q_J."""
        return 2 if j + 1 < self.f.J else 1 + sum(1 for w in self.f.d[-1][1:] if w)

    def linear(self, j: int) -> tuple[dict[int, float], float]:
        """What b_j has without a product: q_j, less b_{j+2} where that is q_J itself; by r, and the constant."""
        f = self.f
        less = f.d[j + 2] if j + 2 == f.J else (0.0,) * f.m
        parts = [a - b for a, b in zip(f.d[j], less, strict=True)]
        return {r: w for r, w in enumerate(parts) if r and w}, parts[0]

    def _steps(self, share: float, prefer: Prefer) -> Iterator[Step]:
        f = self.f
        own: dict[tuple[int, int], float] = {}
        e: dict[int, float] = {}
        for r in self.T:
            low, high = (1 + self.beyond + e.get(h, 0.0) for h in halves(r))
            step = self._step(-1, r, 2 * low, 0.0, high, share / max(self.sensitivity[r], 1e-300), prefer)
            own[-1, r] = step.own
            e[r] = self.error_of(r, e) + step.own
            yield step
        Y = 1 + e.get(f.m, 0.0) + (self.beyond if f.m > 1 else self.e_t)
        for j in range(f.J - 1, -1, -1):
            b = self.bounds(own).b
            B, size = b[j + 1], sum(abs(f.d[i][0]) + b[i] for i in (j, j + 2) if i <= f.J)
            step = self._step(j, 0, Y * (2 if j else 1), f.d[j + 1][0], B, share, prefer, self.reads(j), size)
            own[j, 0] = step.own
            yield step

    def _step(
        self,
        j: int,
        r: int,
        A: float,
        centre: float,
        B: float,
        tolerance: float,
        prefer: Prefer,
        reads: int = 2,
        size: float = 0.0,
    ) -> Step:
        A, B = A * WIDER, B * WIDER + abs(centre) * 2.0**-50 if B else 0.0
        if j < 0 and r % 2 == 0:  # 2 T²: one branch, its error halved
            shape = choose(tolerance / (2 * A * B), prefer, 1)
            error = 2 * A * B * shape.error
        elif tolerance >= A * B:
            shape, error = Shape(2, 0), A * B
        else:
            shape = choose(tolerance / (4 * A * B), prefer, reads)
            error = 4 * A * B * shape.error
        rounding = self.reserve * (2 * shape.pieces + 30) * (shape.layers + 2) * (A * (abs(centre) + B) + size)
        tolerance = min(tolerance, 1e300)
        return Step(j, r, A, centre, B, tolerance, shape, error * (1 + 2.0**-30) + rounding)

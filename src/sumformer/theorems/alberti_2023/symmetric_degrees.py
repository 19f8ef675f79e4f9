"""R_N = Σ_v (Π_{w<v} Λ_w) E_v, E_v = min_ρ 4 M_v(ρ) ρ^{−N_v}/(ρ−1): the error of tensor interpolation in n·d variables.

One degree per coordinate of the own token and one per coordinate of the others, which are all alike: 2d degrees. The
others stand first in the telescope and the own token last, since its degrees cost least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import comb, prod

from sumformer.algebra import chebyshev
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import DomainError
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.remainder import Ellipse
from sumformer.theorems.alberti_2023.token_ellipse import Variable, token_ellipse_maximum

RHOS = (
    *(1.03125, 1.0625, 1.125, 1.25, 1.4375, 1.6875, 2.0, 2.25, 2.625, 3.0, 3.5, 4.0, 4.5, 5.5, 7.0, 9.0, 13.0, 18.0),
    *(27.0, 48.0),
)
START = RHOS.index(2.0)
LARGEST_DEGREE = 64


@dataclass(frozen=True)
class Degrees:
    """N_v for the own coordinates and for the others', with the remainder and the ellipses that prove it."""

    own: tuple[int, ...]
    others: tuple[int, ...]
    remainder: float
    ellipses: tuple[Ellipse, ...]
    m: int

    @property
    def own_types(self) -> int:
        return prod(N + 1 for N in self.own)

    @property
    def other_types(self) -> int:
        return prod(N + 1 for N in self.others)

    @property
    def orbits(self) -> int:
        """How many coefficients there are, up to the order of the others."""
        return self.own_types * comb(self.other_types + self.m - 1, self.m)

    @property
    def lebesgue(self) -> float:
        """Π_v Λ_v: the norm of the whole interpolation."""
        return self.own_lebesgue * self.other_lebesgue**self.m * INFLATE

    @property
    def own_lebesgue(self) -> float:
        return prod(chebyshev.lebesgue(N) for N in self.own) * INFLATE

    @property
    def other_lebesgue(self) -> float:
        return prod(chebyshev.lebesgue(N) for N in self.others) * INFLATE


class DegreeStudy:
    """M_v(ρ) of one target for exactly n tokens, computed when asked for, and the degrees they allow."""

    def __init__(self, f: Target) -> None:
        self.f, self.n, self.d = f, f.tokens.maximum, f.d
        self.m = self.n - 1
        self._known: dict[tuple[int, int], float | None] = {}
        self._best: dict[tuple[int, int], Ellipse] = {}

    def variable(self, v: int) -> Variable:
        """v = 0 … d−1 are the own coordinates, v = d … 2d−1 the others'."""
        return Variable(v < self.d, v % self.d)

    def ellipse(self, v: int, degree: int) -> Ellipse:
        """The ellipse with the least 4 M ρ^{−N}/(ρ−1): from ρ = 2 up while it pays, else down."""
        if (v, degree) not in self._best:
            found = self._climb(v, degree, range(START, len(RHOS)))
            if len(found) < 2 and self._maximum(v, 0) is not None:  # where the least ellipse fails, all do
                found += self._climb(v, degree, range(START - 1, -1, -1), found)
            if not found:
                name, source = self.variable(v).name, self.f.source
                raise DomainError(f"{source} could not be shown analytic near the box {self.f.box} in {name}", source)
            self._best[v, degree] = min(found, key=lambda e: e.remainder(degree))
        return self._best[v, degree]

    def _climb(self, v: int, degree: int, places: range, so_far: list[Ellipse] | None = None) -> list[Ellipse]:
        found: list[Ellipse] = []
        last = min((e.remainder(degree) for e in so_far or ()), default=math.inf)
        for i in places:
            maximum = self._maximum(v, i)
            if maximum is None:
                if places.step > 0:
                    break
                continue
            found.append(Ellipse(v, RHOS[i], maximum))
            if found[-1].remainder(degree) >= last:
                break
            last = found[-1].remainder(degree)
        return found

    def _maximum(self, v: int, i: int) -> float | None:
        if (v, i) not in self._known:
            f = self.f
            found = token_ellipse_maximum(f.expression, f.box, self.n, self.variable(v), RHOS[i])
            self._known[v, i] = found if found is not None and found < 1e250 else None
        return self._known[v, i]

    def at(self, own: tuple[int, ...], others: tuple[int, ...]) -> Degrees:
        """R_N for given degrees."""
        total, factor = 0.0, 1.0
        used = own + others if self.m else own
        ellipses = tuple(self.ellipse(v, N) for v, N in enumerate(used))
        mine, theirs = ellipses[: self.d], ellipses[self.d :]
        for ellipse_group, degrees in ([(theirs, others)] * self.m) + [(mine, own)]:
            for ellipse, N in zip(ellipse_group, degrees, strict=True):
                total += factor * ellipse.remainder(N)
                factor *= chebyshev.lebesgue(N)
        return Degrees(own, others, total * INFLATE * (1 + 1e-12), ellipses, self.m)

    def choose(self, tolerance: float, budget: int) -> Degrees:
        """The least degrees found with R_N ≤ tolerance, by steps that lower R_N most for the orbits they add.

        Within `budget` orbits; what comes back may miss the tolerance when that is not enough.
        """
        current = self.at((2,) * self.d, (2 if self.m else 0,) * self.d)
        while current.remainder > tolerance:
            steps = [self._raised(current, v) for v in range(2 * self.d) if self.m or v < self.d]
            steps = [s for s in steps if s.orbits <= budget and max(s.own + s.others) <= LARGEST_DEGREE]
            if not steps:
                return current
            current = max(steps, key=lambda s: _worth(current, s))
        return current

    def _raised(self, degrees: Degrees, v: int) -> Degrees:
        all_degrees = [*degrees.own, *degrees.others]
        all_degrees[v] += 1
        return self.at(tuple(all_degrees[: self.d]), tuple(all_degrees[self.d :]))


def _worth(old: Degrees, new: Degrees) -> float:
    """log(R/R') per log of the growth."""
    gain = math.log(max(old.remainder, 1e-300) / max(new.remainder, 1e-300))
    return gain / math.log(new.orbits / old.orbits)

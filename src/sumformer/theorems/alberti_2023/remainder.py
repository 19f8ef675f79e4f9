"""R_N = Σ_v Λ^{v−1} min_ρ 4 M_v(ρ) ρ^{−N}/(ρ−1): what interpolating K at degree N in every variable is off by."""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.algebra import chebyshev
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import DomainError
from sumformer.targets import Extremum, Node, Unary, postorder, to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.ellipse import ellipse_candidates, ellipse_maximum

START = 2.0  # the ellipse tried first


@dataclass(frozen=True)
class Ellipse:
    """The ellipse that gives E_v, and the bound M of |K| in it."""

    variable: int
    rho: float
    maximum: float

    def remainder(self, degree: int) -> float:
        """E_v = 4 M ρ^{−N}/(ρ−1)."""
        return chebyshev.ellipse_remainder(self.maximum, self.rho, degree)


class Maxima:
    """M_v(ρ), computed when asked for: all ellipses for the first variable, for the others the one that served it."""

    def __init__(self, kernel: Node, box: Box, coords: tuple[int, ...]) -> None:
        self.kernel, self.box, self.coords = kernel, box, coords
        self.known: dict[tuple[int, float], float | None] = {}

    def at(self, variable: int, rho: float) -> float | None:
        key = (variable, rho)
        if key not in self.known:
            maximum = ellipse_maximum(self.kernel, self.box, self.coords, variable, rho)
            self.known[key] = maximum if maximum is not None and maximum < 1e250 else None
        return self.known[key]

    def all(self, variable: int, degree: int) -> list[Ellipse]:
        """Ellipses around the best one for this degree: from the middle of the list up while it pays, else down.

        log(M ρ^{−N}) is convex in log ρ, so the search stops where the remainder starts to grow.
        """
        candidates = ellipse_candidates()
        found: list[Ellipse] = []
        for direction in (candidates[candidates.index(START) :], candidates[: candidates.index(START)][::-1]):
            last = min((e.remainder(degree) for e in found), default=float("inf"))
            for rho in direction:
                maximum = self.at(variable, rho)
                if maximum is None and direction[0] == START:
                    break
                if maximum is not None:
                    found.append(Ellipse(variable, rho, maximum))
                    if found[-1].remainder(degree) >= last:
                        break
                    last = found[-1].remainder(degree)
            if len(found) > 1:
                break
        if not found:
            where = f"coordinate {self.coords[variable % len(self.coords)]} of {'xy'[variable // len(self.coords)]}"
            source = to_source(self.kernel)
            reason = f"{source} could not be shown analytic and bounded near the box {self.box} in {where}"
            raise DomainError(f"{reason}: {_help(self.kernel)}", source)
        return found

    def best(self, variable: int, degree: int, like: Ellipse | None) -> Ellipse:
        same = None if like is None else self.at(variable, like.rho)
        if like is not None and same is not None and same <= 100 * like.maximum:
            return Ellipse(variable, like.rho, same)
        return min(self.all(variable, degree), key=lambda e: e.remainder(degree))


def _help(kernel: Node) -> str:
    if any(isinstance(part, Extremum) or (isinstance(part, Unary) and part.fn == "abs") for part in postorder(kernel)):
        other = "abs(t) of another t is within 0.01 of sqrt(t**2 + 0.0001), which is analytic"
        return f"route mesh takes functions of x - y with corners, and max(x, y) is y + max(x - y, 0); {other}"
    return "a smaller box, or a kernel that is smoother or wider, would help"


def interpolation_remainder(maxima: Maxima, degree: int) -> tuple[float, tuple[Ellipse, ...]]:
    """R_N = Σ_v Λ^{v−1} E_v and the ellipses that give it."""
    total, factor = 0.0, 1.0
    chosen: list[Ellipse] = []
    for variable in range(2 * len(maxima.coords)):
        best = maxima.best(variable, degree, chosen[0] if chosen else None)
        total += factor * best.remainder(degree)
        factor *= chebyshev.lebesgue(degree)
        chosen.append(best)
    return total * INFLATE, tuple(chosen)

"""A 4.1, continuous proof, for targets without sum structure: g(x; {others}) analytic, exactly n tokens.

1. R_N: degrees N for the own token and for the others such that tensor interpolation I_N g errs by little.
2. I_N g from its values at Chebyshev nodes, one number per orbit of the permutations of the others.
3. S: as few of its orbits as sup |I_N g − S| allows, bounded on a grid.
4. S as a polynomial in T_α(x) and the Chebyshev power sums of the others, Σ − φ(x): the network; roundings counted.
"""

from __future__ import annotations

from sumformer.certificates.certificate import ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_box
from sumformer.theorems.alberti_2023.orbit_interpolant import interpolate
from sumformer.theorems.alberti_2023.symmetric_degrees import Degrees, DegreeStudy
from sumformer.theorems.alberti_2023.symmetric_network import SymmetricNetwork, symmetric_network
from sumformer.theorems.alberti_2023.symmetric_support import Support, SupportStudy
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, Estimate

MAX_ORBITS = 6_000_000
MAX_VARIABLES = 20
REMAINDER_SHARE = 0.1  # of ε, aimed at
LARGEST_SHARE = 0.6  # of ε, put up with where the orbits do not allow better
SECONDS_PER_ORBIT = 4e-6
ATTEMPTS = 3
NOTHING = 1e-290  # what is less is 0 in float64


def symmetric_route(f: Target, epsilon: float, arithmetic: Arithmetic) -> Built:
    """The network of the four steps, with error terms ≤ ε; a `RefusedError` with the reasons where that is not so."""
    refuse_box(f.box, arithmetic)
    degrees = _degrees(f, epsilon)
    try:
        interpolant = interpolate(f, degrees)
    except DomainError as error:
        raise RefusedError("route symmetric: the target has no value somewhere", [str(error)]) from error
    study = SupportStudy(interpolant)
    reserve = 1e-3 * epsilon
    reachable = epsilon
    for _ in range(ATTEMPTS):
        support = study.choose(epsilon * (1 - 1e-9) / SLACK - degrees.remainder - reserve)
        if support is None:
            reachable = SLACK * (degrees.remainder + interpolant.error) + 2 * reserve
            break
        built = symmetric_network(f, support, arithmetic)
        reachable = SLACK * (degrees.remainder + support.dropped + built.coefficients) + built.rounding
        if reachable <= epsilon:
            return _built(epsilon, degrees, support, built)
        reserve = 1.2 * (built.coefficients + built.rounding)
        if not reserve < epsilon / 2:
            break
    raise RefusedError(
        f"route symmetric: rounding in {arithmetic.name} takes more than ε = {epsilon:g} leaves room for",
        ["dtype float64 (or mixed) rounds less" if arithmetic.u > 2**-50 else "a larger ε, or fewer tokens, is needed"],
        reachable,
    )


def symmetric_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """Degrees and orbits, from the ellipses alone; nothing is interpolated."""
    try:
        refuse_box(f.box, arithmetic)
        degrees = _degrees(f, epsilon)
    except RefusedError as refusal:
        return Estimate.refused(refusal)
    why = (
        f"analytic; degree {_range(degrees.own)} in the own token, {_range(degrees.others)} in the others, "
        f"{degrees.orbits:,} orbits, of which as few are kept as ε allows"
    )
    return Estimate(
        possible=True,
        why=why,
        latent_dimension=degrees.other_types - 1,
        terms=None,
        seconds=1.0 + SECONDS_PER_ORBIT * degrees.orbits,
        reachable=degrees.remainder / LARGEST_SHARE,
    )


def _degrees(f: Target, epsilon: float) -> Degrees:
    _refuse(f)
    study = DegreeStudy(f)
    try:
        degrees = study.choose(REMAINDER_SHARE * epsilon, MAX_ORBITS)
    except DomainError as error:
        raise RefusedError(
            "route symmetric interpolates, and needs a target that is analytic near the box",
            [str(error), "route grid asks for continuity alone"],
        ) from error
    if all(ellipse.maximum < NOTHING for ellipse in degrees.ellipses):
        raise RefusedError("route symmetric: the target is 0 everywhere", ["route exact takes it, or write 0"])
    if degrees.remainder > LARGEST_SHARE * epsilon:
        raise RefusedError(
            f"route symmetric: interpolating {f.tokens.maximum} tokens in {f.d} dimension(s) to ε = {epsilon:g} "
            f"takes more than {MAX_ORBITS:,} orbits",
            [
                f"{degrees.orbits:,} orbits (degrees {_range(degrees.own)} own, {_range(degrees.others)} others) leave "
                f"an error of {degrees.remainder:.2g}; fewer tokens or a smaller box need fewer"
            ],
            degrees.remainder / LARGEST_SHARE,
        )
    return degrees


def _refuse(f: Target) -> None:
    """What can be said before any work."""
    reasons = []
    if not f.expression.free:
        reasons.append("it is a constant: route exact takes it")
    if not f.tokens.exact:
        reasons.append(f"its polynomial is made for one number of tokens, and {f.tokens.formula()} was asked: fix n")
    elif f.tokens.maximum * f.d > MAX_VARIABLES:
        reasons.append(f"n·d = {f.tokens.maximum * f.d} variables; at most {MAX_VARIABLES} are interpolated")
    if getattr(f, "positioned", False):
        reasons.append("the target uses positions, so the others are not alike")
    if reasons:
        raise RefusedError("route symmetric does not take this target", reasons)


def _built(epsilon: float, degrees: Degrees, support: Support, built: SymmetricNetwork) -> Built:
    dropped = support.dropped + built.coefficients
    room = epsilon * (1 - 1e-9) - SLACK * (degrees.remainder + dropped)
    network = built.network.eval().requires_grad_(False)
    grid = support.grid
    return Built(
        network=network,
        route="symmetric",
        why="analytic in every token: interpolated once per set of the others, written in their power sums",
        terms=(
            ErrorTerm("interpolation remainder", "proved", degrees.remainder * SLACK),
            ErrorTerm("dropped and rounded coefficients", "enclosed", dropped * SLACK),
            ErrorTerm("rounding", "rounding", max(min(ROUNDING_SLACK * built.rounding, room), built.rounding)),
        ),
        latent_dimension=network.latent_dimension,
        constants={
            "own_degrees": list(degrees.own),
            "other_degrees": list(degrees.others),
            "ellipses": [{"variable": e.variable, "rho": e.rho, "maximum": e.maximum} for e in degrees.ellipses],
            "remainder": degrees.remainder,
            "orbits": degrees.orbits,
            "kept": len(support.own),
            "terms": len(network.terms),
            "grid": None if grid is None else {"own": grid.own, "others": grid.others, "tau": str(grid.tau)},
            "dropped": support.dropped,
            "coefficients": built.coefficients,
        },
    )


def _range(degrees: tuple[int, ...]) -> str:
    return str(degrees[0]) if len(set(degrees)) == 1 else ", ".join(map(str, degrees))

"""|f − N| ≤ |f − S| + |S − N|: a Sumformer S within a part of ε, compiled into N within the rest.

1. S by route sums (or exact), its reductions' ranges        approximation
2. S as a program of values with ranges                      sums.py
3. the rest of ε divided among the gadgets                   budget.py
4. gadgets, blocks, coordinates, weights                     realise.py, schedule.py, layout.py, assembly.py
5. the proved bound with the gadgets' own errors, term by term: φ gadgets, ψ gadgets, rounding
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumformer.algebra.rounding import BoolArray, FloatArray, gamma
from sumformer.certificates.certificate import ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.function import MAX_KNOTS
from sumformer.gadgets.saw import Prefer, choose
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.pretrained import PretrainedModule
from sumformer.targets import Reduce
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.build import build
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.compile.assembly import Assembly
from sumformer.theorems.alberti_2023.compile.budget import Budget, area
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.layout import lay_out
from sumformer.theorems.alberti_2023.compile.mean_head import MeanHead
from sumformer.theorems.alberti_2023.compile.network import to_network
from sumformer.theorems.alberti_2023.compile.program import Program
from sumformer.theorems.alberti_2023.compile.realise import Realised, realise
from sumformer.theorems.alberti_2023.compile.rounding import Rounding
from sumformer.theorems.alberti_2023.compile.schedule import schedule
from sumformer.theorems.alberti_2023.compile.sums import SumsProgram, gathered
from sumformer.theorems.alberti_2023.compile.symmetric import symmetric_program
from sumformer.theorems.alberti_2023.error_bound import ErrorBound
from sumformer.theorems.alberti_2023.guesses import unnamed
from sumformer.theorems.alberti_2023.kernel_errors import Switches
from sumformer.theorems.alberti_2023.plan import Plan
from sumformer.theorems.alberti_2023.planned import Planned
from sumformer.theorems.alberti_2023.split import token_pieces
from sumformer.theorems.alberti_2023.sums_built import kernel_constants
from sumformer.theorems.alberti_2023.sums_route import sums_route
from sumformer.theorems.built import SLACK, in_one_line
from sumformer.theorems.routes import by_route

MAX_NONZERO = 12_000_000
MAX_GATHERED = 2_000_000  # more take minutes, and a file larger than the checker reads
APPROXIMATION_SHARE = 0.45
USABLE = 0.97


@dataclass(frozen=True)
class Ideal:
    """A Sumformer to compile: the module, its program, |f − S| by term, and the route that found it."""

    module: PretrainedModule
    program: Program
    outputs: tuple[Functional, ...]
    approximation: tuple[ErrorTerm, ...]
    route: str
    constants: Mapping[str, Any]  # what the proof of |f − S| is checked from
    made_for: int | None = None  # n, where the program depends on it


@dataclass(frozen=True)
class Parts:
    """|S − N|: φ gadgets, sum head, ψ gadgets, rounding."""

    phi: float
    head: float
    psi: float
    rounding: float


def ideal_of(f: Target, epsilon: float, arithmetic: Arithmetic, prefer: Prefer, route: str | None) -> Ideal:
    """S within a part of ε, as a program: by the route asked for, or by the first that gets there."""
    chosen = {"symmetric": ("symmetric",), None: ("sums", "symmetric") if f.tokens.exact else ("sums",)}
    refusals: dict[str, RefusedError | DomainError] = {}
    for name in chosen.get(route, ("sums",)):
        try:
            return (_symmetric if name == "symmetric" else _sums)(f, epsilon, arithmetic, prefer)
        except (RefusedError, DomainError) as refusal:
            refusals[name] = refusal
    raise _none_to_compile(epsilon, refusals)


def _none_to_compile(epsilon: float, refusals: dict[str, RefusedError | DomainError]) -> RefusedError:
    """S has a part of ε only: what it can reach, the network can within more."""
    reached = [e.reachable for e in refusals.values() if isinstance(e, RefusedError) and e.reachable is not None]
    least = min(reached) / APPROXIMATION_SHARE if reached else None
    return RefusedError(
        f"no Sumformer can be compiled within ε = {epsilon:g}: its share is {APPROXIMATION_SHARE * epsilon:.3g} "
        f"({APPROXIMATION_SHARE:.0%})".replace("%", " %"),
        [f"{name}: {unnamed(in_one_line(refusal))}" for name, refusal in refusals.items()],
        least,
    )


def _symmetric(f: Target, epsilon: float, arithmetic: Arithmetic, prefer: Prefer) -> Ideal:
    built = by_route(f, APPROXIMATION_SHARE * epsilon, arithmetic, "symmetric")
    program, outputs = symmetric_program(built.network, f.box, prefer)
    terms = tuple(t for t in built.terms if t.kind != "rounding")
    return Ideal(built.network.requires_grad_(False), program, outputs, terms, "symmetric", built.constants)


def _sums(f: Target, epsilon: float, arithmetic: Arithmetic, prefer: Prefer) -> Ideal:
    """S by route sums within a part of ε, as a program."""
    result = sums_route(f, APPROXIMATION_SHARE * epsilon, arithmetic)
    if (size := gathered(result.plan)) > MAX_GATHERED:
        raise _too_wide(result, size)
    cells = Cells(f.box)
    made = SumsProgram(result.plan, f.tokens, cells, _ranges(f, result, arithmetic, cells), prefer).compile()
    split = result.split
    terms = (
        ErrorTerm("interpolation remainder", "proved", split.remainder * SLACK),
        ErrorTerm("dropped and rounded coefficients", "enclosed", split.dropped * SLACK),
    )
    route = "exact" if result.exact else "sums"
    constants = {"kernels": [kernel_constants(result, kernel) for kernel in result.plan.kernels]}
    module = build(result.plan, arithmetic).eval().requires_grad_(False)
    needed = tuple(t for t in terms if t.bound > 0)
    return Ideal(module, made.program, made.outputs, needed, route, constants, made.made_for)


def _too_wide(result: Planned[Plan], size: int) -> RefusedError:
    return RefusedError(
        f"the compiled network would have about {size:.2g} weights that read the sums; at most {MAX_GATHERED:.2g} are "
        "built",
        [f"d' = {result.plan.latent_dimension}: a larger ε, fewer coordinates or a wider kernel need fewer features"],
    )


def _ranges(
    f: Target, result: Planned[Plan], arithmetic: Arithmetic, cells: Cells
) -> dict[tuple[Reduce, int], tuple[float, float]]:
    """Where the Sumformer's reductions lie: the target's own ranges, widened by the approximation error."""
    out: dict[tuple[Reduce, int], tuple[float, float]] = {}
    for piece in token_pieces(result.plan.decomposition, cells, f.tokens):
        bound = ErrorBound(result.plan, arithmetic, piece.tokens, cells, Switches(rounding=False), piece.ranges)
        bound.total()
        for s in result.plan.decomposition.sums:
            tracked = bound.values[s.reduction].computed()
            for c in range(s.reduction.width):
                lo, hi = float(tracked.lo[..., c].min()), float(tracked.hi[..., c].max())
                known = out.get((s.reduction, c), (lo, hi))
                out[s.reduction, c] = (min(lo, known[0]), max(hi, known[1]))
    return out


@dataclass(frozen=True, eq=False)
class Compilation:
    """The network and |S − N|, term by term."""

    network: CompiledTransformer
    parts: Parts


def compile_network(ideal: Ideal, f: Target, allowed: float, head: MeanHead) -> Compilation:
    """N within `allowed` of S, or a refusal before anything large is made."""
    budget, asked = Budget(ideal.program, ideal.outputs), allowed
    local = budget.split(allowed)
    _refuse_size(budget, local, allowed)
    rounding = np.zeros_like(local)
    for _ in range(8):
        assumed = local + 2 * rounding
        errors = budget.errors(assumed)
        if not np.isfinite(errors).all():  # with rounding an argument would leave its range: a little less for gadgets
            allowed *= 0.9
            local = budget.split(allowed)
            continue
        realised = realise(budget, local, errors)
        s = schedule(budget, realised)
        layout = lay_out(budget, realised, s, f.d)
        assembly = Assembly(budget, realised, s, layout, errors)
        counted = Rounding(budget, realised, s, layout, assembly, errors, head.roundings)
        counted.read_in = [
            float((abs(a) + abs(b)) / r) for a, b, r in zip(f.box.lower, f.box.upper, f.box.radius, strict=True)
        ]
        head_error = counted.of_head()
        found = counted.local() + head_error
        actual = _actual(realised, len(local))
        if bool(np.all(budget.errors(actual + found) <= errors)) and rounding.any():
            parts = _parts(budget, actual, head_error, found)
            complete = budget.errors(actual + found)
            n = ideal.made_for if head.tokens is None else head.tokens
            network = to_network(assembly, realised, f.box, head.make, ideal.module, complete, n)
            return Compilation(network.eval().requires_grad_(False), parts)
        rounding = np.maximum(found, 1e-300)
    raise RefusedError("rounding was not bounded", ["float64 does not suffice for this target at this ε"], 20 * asked)


def _actual(realised: Sequence[Realised], count: int) -> FloatArray:
    out = np.zeros(count)
    for r in realised:
        for v, error in zip(r.values, r.errors, strict=True):
            out[v] = error
    return out


def _parts(budget: Budget, actual: FloatArray, head: FloatArray, rounding: FloatArray) -> Parts:
    """The bound with φ's gadgets alone, then with the head, with all gadgets, and with rounding; as differences."""
    averaged = _feeds_means(budget)
    phi = budget.bound(np.where(averaged, actual, 0.0))
    summed = max(budget.bound(np.where(averaged, actual, 0.0) + head), phi)
    gadgets = max(budget.bound(actual + head), summed)
    total = max(budget.bound(actual + rounding), gadgets) + _read_out_rounding(budget)
    return Parts(phi, summed - phi, gadgets - summed, total - gadgets)


def _read_out_rounding(budget: Budget) -> float:
    """γ_{k+8} (Σ |w||v| + |b|) over the rows of the read-out, the rounding of its weights included."""
    values = budget.program.values
    sizes = [(len(f.terms), abs(f.offset) + sum(abs(w) * values[v].size for v, w in f.terms)) for f in budget.outputs]
    return max(2.0 * gamma(k + 8, 2.0**-53) * size for k, size in sizes)


def _feeds_means(budget: Budget) -> BoolArray:
    """Values that some mean depends on."""
    values = budget.program.values
    out = np.zeros(len(values), dtype=bool)
    for v in reversed(values):
        if v.op == "mean" or out[v.index]:
            for f in v.of:
                for u, _ in f.terms:
                    out[u] = True
    return out


def estimated_nonzero(budget: Budget, local: FloatArray) -> float:
    """The weights that the tolerances ask for, before any is made."""
    program, total = budget.program, 0.0
    for v in program.values:
        if not budget.sensitivity[v.index]:
            continue
        if v.op == "product" or v.is_square:
            shape = choose(max(local[v.index], 1e-300) / max(4 * area(program, v), 1e-300), program.prefer)
            total += shape.nonzero(2) * (1 if v.is_square else 2)
        elif v.op == "function" and v.shape is not None:
            knots = v.shape.knots_at(float(local[v.index]))
            total += 3 * knots if knots < 0.5 * MAX_KNOTS else float("inf")
        elif v.op == "sum":
            total += len(v.of[0].terms)
    return total


def _refuse_size(budget: Budget, local: FloatArray, allowed: float) -> None:
    def size_at(factor: float) -> float:
        return estimated_nonzero(budget, budget.split(allowed * factor))

    size = estimated_nonzero(budget, local)
    if size <= MAX_NONZERO:
        return
    fitting = (factor for factor in (2.0, 5.0, *(10.0**k for k in range(1, 13))) if size_at(factor) <= MAX_NONZERO)
    factor = next(fitting, None)
    others = [] if budget.program.prefer == "parameters" else ["prefer='parameters' takes fewer weights"]
    raise RefusedError(
        f"the compiled network would have {_about(size)} non-zero weights; at most {MAX_NONZERO:.2g} are built, "
        f"{MAX_KNOTS:.1g} units for one function",
        others,
        None if factor is None else 2 * factor * allowed,
    )


def _about(size: float) -> str:
    return f"about {size:.2g}" if size < float("inf") else "far too many"

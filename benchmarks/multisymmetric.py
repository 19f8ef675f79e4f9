"""Semi-invariant polynomials in power sums, proof included, against SymPy in the same run; and the dense n = 6, d = 3.

python benchmarks/multisymmetric.py [--largest 8] [--rounds 12] [--json benchmarks/results/multisymmetric_cpu.json]

SymPy writes symmetric polynomials in *elementary* ones: `sympy.symmetrize` on expressions, `PolyElement.symmetrize` on
ring elements. Each gets what it likes best, made outside the clock: one polynomial in the others per power of the own
token. Ours gets the exponents of the whole, and its time includes the test of symmetry and the proof of the identity.
Every call has new coefficients, as SymPy remembers expressions it has seen. Blocks of calls alternate and the time is
the processor's, so that other work on the machine favours none; least times are compared, and medians. Ours keeps
tables about exponents between calls (orbits, their sums in power sums, numbers of terms), never coefficients or proofs;
"first_call" is with these tables empty, against SymPy after `clear_cache`.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import sympy
from sympy.core.cache import clear_cache
from sympy.polys.rings import ring

from sumformer.algebra.power_sum_polynomial import numbered
from sumformer.algebra.small_polynomial import arrangements, augmented, orbit_sum, representative
from sumformer.theorems.alberti_2023.power_sums import semi_invariant_form, side_by_side

RESULTS = Path(__file__).parent / "results" / "multisymmetric_cpu.json"
Expanded = dict[tuple[int, ...], Fraction]


def dense(n: int, d: int, degree: int, seed: int = 1) -> Expanded:
    """Every monomial of n tokens up to `degree`, random coefficients, equal along orbits of the others."""
    draw = random.Random(seed)
    orbits: dict[tuple[Any, ...], Fraction] = {}
    polynomial = {}
    for e in exponents(n * d, degree):
        tokens = [e[i * d : (i + 1) * d] for i in range(n)]
        orbit = (tokens[0], *sorted(tokens[1:]))
        if orbit not in orbits:
            orbits[orbit] = Fraction(draw.choice([-1, 1]) * draw.randint(1, 99), draw.randint(1, 9))
        polynomial[e] = orbits[orbit]
    return polynomial


def exponents(k: int, degree: int) -> Iterator[tuple[int, ...]]:
    if k == 0:
        yield ()
        return
    for first in range(degree + 1):
        for rest in exponents(k - 1, degree - first):
            yield (first, *rest)


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """One run, the collector at rest, as in timeit."""
    gc.disable()
    try:
        start = clock()
        run()
        return clock() - start
    finally:
        gc.enable()


def against_sympy(n: int, rounds: int) -> dict[str, float | int]:
    """d = 1, degree n: the whole semi-invariant polynomial, by three programs."""
    names = sympy.symbols(f"y1:{n}")
    polynomials = ring(names, sympy.QQ)[0]
    block = max(1, 2 ** (8 - n))
    if n >= 7:  # seconds each
        rounds = 1
    draws, cpu = count(), partial(seconds, clock=time.thread_time)
    times: dict[str, list[float]] = {"ours": [], "symmetrize": [], "ring_symmetrize": []}
    first: dict[str, list[float]] = {"ours": [], "symmetrize": []}
    for _ in range(rounds):
        given = [dense(n, 1, n, next(draws)) for _ in range(block + 1)]
        elements = [[polynomials.from_dict(s) for s in by_own(polynomial)] for polynomial in given]
        expressions = [[element.as_expr() for element in row] for row in elements]
        forget()
        ours = [cpu(partial(semi_invariant_form, polynomial, n)) for polynomial in given]
        ring_level = [cpu(lambda row=row: [element.symmetrize() for element in row]) for row in elements]
        clear_cache()
        public = [cpu(lambda row=row: [sympy.symmetrize(e, *names) for e in row]) for row in expressions]
        first["ours"].append(ours[0])
        first["symmetrize"].append(public[0])
        times["ours"] += ours[1:]
        times["symmetrize"] += public[1:]
        times["ring_symmetrize"] += ring_level
    least = {program: min(found) for program, found in times.items()}
    median = {program: statistics.median(found) for program, found in times.items()}
    cold = {program: min(found) for program, found in first.items()}
    return {
        "n": n,
        "degree": n,
        "terms": len(given[0]),
        **{f"{program}_ms": round(value * 1e3, 3) for program, value in least.items()},
        "ours_first_call_ms": round(cold["ours"] * 1e3, 3),
        "times_faster_than_symmetrize": round(least["symmetrize"] / least["ours"], 1),
        "times_faster_than_symmetrize_by_medians": round(median["symmetrize"] / median["ours"], 1),
        "times_faster_than_symmetrize_first_call": round(cold["symmetrize"] / cold["ours"], 1),
        "times_faster_than_ring_symmetrize": round(least["ring_symmetrize"] / least["ours"], 1),
        "times_faster_than_ring_symmetrize_by_medians": round(median["ring_symmetrize"] / median["ours"], 1),
        "times_faster_than_ring_symmetrize_first_call": round(least["ring_symmetrize"] / cold["ours"], 1),
    }


def forget() -> None:
    """Empty every table that is kept between calls."""
    for table in (representative, arrangements, orbit_sum, augmented, numbered):
        table.cache_clear()


def by_own(polynomial: Expanded) -> list[dict[tuple[int, ...], Any]]:
    """The coefficients s_α(x_2, …, x_n) of the powers of x_1."""
    found: dict[int, dict[tuple[int, ...], Any]] = {}
    for (own, *others), c in polynomial.items():
        found.setdefault(own, {})[tuple(others)] = sympy.QQ(c.numerator, c.denominator)
    return list(found.values())


def large(n: int, d: int, degree: int) -> dict[str, Any]:
    """A dense polynomial: one form with its proof, then all three latent dimensions with theirs."""
    polynomial = dense(n, d, degree)
    semi_invariant_form(dense(2, d, 2), 2, d)
    one = min(seconds(partial(semi_invariant_form, polynomial, n, d)) for _ in range(5))
    three = min(seconds(partial(side_by_side, polynomial, n, d)) for _ in range(3))
    forms = side_by_side(polynomial, n, d)
    return {
        "n": n,
        "d": d,
        "degree": degree,
        "terms": len(polynomial),
        "seconds_with_proof": round(one, 3),
        "seconds_three_forms": round(three, 3),
        "failure_probability": forms[2].failure_probability,
        "latent_dimensions": {f.latent: f.dimension for f in forms},
        "sigma_terms": {f.latent: f.terms for f in forms},
        "power_sums_multiplied": {f.latent: f.products for f in forms},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=8, help="the largest n against SymPy")
    parser.add_argument("--rounds", type=int, default=12, help="alternating blocks of calls, for n < 7")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    result: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "sympy": sympy.__version__}
    result["dense"] = [large(*case) for case in ((6, 1, 6), (3, 2, 6), (4, 2, 6), (4, 3, 6), (6, 3, 6))]
    for row in result["dense"]:
        print(row)
    result["against_sympy"] = []
    for n in range(3, options.largest + 1):
        result["against_sympy"].append(against_sympy(n, options.rounds))
        print(result["against_sympy"][-1])
    options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

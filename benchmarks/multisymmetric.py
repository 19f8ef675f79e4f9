"""Semi-invariant polynomials in power sums, proof included, against SymPy in the same run; and the dense n = 6, d = 3.

python benchmarks/multisymmetric.py [--largest 8] [--json benchmarks/results/multisymmetric_cpu.json]

SymPy writes symmetric polynomials in *elementary* ones: `sympy.symmetrize` on expressions, `PolyElement.symmetrize` on
ring elements. Each gets what it likes best, made outside the clock: one polynomial in the others per power of the own
token. Ours gets the exponents of the whole, and its time includes the test of symmetry and the proof of the identity.
Every repetition has new coefficients, as SymPy remembers expressions it has seen; the least times are compared.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import sympy
from sympy.polys.rings import ring

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


def seconds(run: Callable[[], object]) -> float:
    """One run, the collector at rest, as in timeit."""
    gc.disable()
    try:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    finally:
        gc.enable()


def against_sympy(n: int) -> dict[str, float | int]:
    """d = 1, degree n: the whole semi-invariant polynomial, by three programs."""
    names = sympy.symbols(f"y1:{n}")
    polynomials = ring(names, sympy.QQ)[0]
    semi_invariant_form(dense(n, 1, n, seed=0), n)  # imports, once
    given = [dense(n, 1, n, seed) for seed in range(1, 2 + max(0, 9 - n) * 3)]
    elements = [[polynomials.from_dict(s) for s in by_own(polynomial)] for polynomial in given]
    if n >= 7:  # seconds each
        del elements[1:]
    expressions = [[element.as_expr() for element in row] for row in elements]
    ours = min(seconds(partial(semi_invariant_form, polynomial, n)) for polynomial in given)
    public = min(seconds(lambda row=row: [sympy.symmetrize(e, *names) for e in row]) for row in expressions)
    ring_level = min(seconds(lambda row=row: [element.symmetrize() for element in row]) for row in elements)
    return {
        "n": n,
        "degree": n,
        "terms": len(given[0]),
        "ours_ms": round(ours * 1e3, 3),
        "symmetrize_ms": round(public * 1e3, 2),
        "ring_symmetrize_ms": round(ring_level * 1e3, 2),
        "times_faster_than_symmetrize": round(public / ours, 1),
        "times_faster_than_ring_symmetrize": round(ring_level / ours, 1),
    }


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
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    result: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "sympy": sympy.__version__}
    result["dense"] = [large(*case) for case in ((6, 1, 6), (3, 2, 6), (4, 2, 6), (4, 3, 6), (6, 3, 6))]
    for row in result["dense"]:
        print(row)
    result["against_sympy"] = []
    for n in range(3, options.largest + 1):
        result["against_sympy"].append(against_sympy(n))
        print(result["against_sympy"][-1])
    options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

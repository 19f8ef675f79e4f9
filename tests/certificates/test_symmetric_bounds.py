"""B' of a `SymmetricSumformer`, term by term, against errors that are known exactly.

Targets are polynomials, so that f − S is known; tokens and coefficients are chosen so that one term is all there is.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tampered import sign

from sumformer.certificates.certificate import OF_A_SUMFORMER
from sumformer.certificates.checker import check
from sumformer.certificates.checker.symmetric.expansion import expand
from sumformer.certificates.checker.symmetric.files import orbit_count, polynomial_of
from sumformer.certificates.checker.symmetric.remainder import remainder
from sumformer.theorems.construction import load

T2, T3 = "(2*{0}**2 - 1)", "(4*{0}**3 - 3*{0})"
FAR = 9e5  # ρ: of a polynomial of degree k ≤ N next to nothing is left, 2 ρ^{k−N−1} of its leading coefficient


def written(
    folder: Path,
    source: str,
    n: int,
    coefficients: Any,
    *,
    maxima: tuple[float, ...],
    degrees: tuple[int, int] = (4, 3),
    rho: float = FAR,
    grid: dict[str, Any] | None = None,
    box: tuple[str, str, str] = ("-1:1", "0", "1"),
    arithmetic: str = "float64",
    **network: Any,
) -> Path:
    """The network of these coefficients, and a certificate that claims much: what is found is what counts."""
    dtype = np.float32 if arithmetic == "float32" else np.float64
    C = np.asarray(coefficients, dtype=dtype).reshape(-1, 1)
    config = {"type": "SymmetricSumformer", "d": 1, "tokens": n, "width": 1, "arithmetic": arithmetic}
    config |= {"centre": [box[1]], "radius": [box[2]]}
    config |= {"own": [[0]], "features": [[1]], "products": [[0, 0]], "terms": [[0, 0]] * len(C)} | network
    own, others = degrees
    constants = {"own_degrees": [own], "other_degrees": [others], "remainder": 0.0, "dropped": 0.0, "coefficients": 0.0}
    constants |= {"orbits": orbit_count((own,), (others,), n - 1), "kept": 0, "terms": len(C), "grid": grid}
    constants["ellipses"] = [{"variable": v, "rho": rho, "maximum": M} for v, M in enumerate(maxima)]
    certificate = {"target": source, "d": 1, "box": box[0], "tokens": str(n), "arithmetic": arithmetic}
    certificate |= {"route": "symmetric", "epsilon": 1e9, "total": 1e9, "terms": [], "constants": constants}
    certificate |= {"latent_dimension": len(config["features"]), "assumptions": list(OF_A_SUMFORMER)}
    certificate |= {"architecture": "sumformer", "norm": "sup", "version": 1}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "certificate.json").write_text(json.dumps(certificate))
    save_file({"coefficients": C}, folder / "model.safetensors")
    return sign(folder)


def found(folder: Path) -> float:
    bound = check(folder).bound
    assert math.isfinite(bound)
    return bound


# ---- the interpolation remainder


def test_what_lies_above_the_degree_of_the_own_token(tmp_path: Path) -> None:
    """T_3 vanishes at the nodes of N = 2: all of it is remainder, and 2ρ/(ρ − 1) times it is found."""
    folder = written(tmp_path, T3.format("x"), 1, [0.0], degrees=(2, 0), rho=1e3, maxima=(5.01e8,))
    assert 1 <= found(folder) <= 2.2


def test_every_other_token_has_a_remainder_of_its_own(tmp_path: Path) -> None:
    """3 at y = 1; that of one variable is 2 at most."""
    source = f"sum_others({T3.format('y')})"
    folder = written(tmp_path, source, 4, [0.0], degrees=(0, 2), rho=1e3, maxima=(10.0, 5.01e8))
    assert found(folder) >= 3


def lebesgue(N: int) -> float:
    """Σ |ℓ_k(1)| for the zeros of T_{N+1}: what interpolation makes of values ±1 there."""
    t = np.cos((2 * np.arange(N + 1) + 1) * np.pi / (2 * N + 2))
    return float(sum(abs(np.prod((1 - np.delete(t, k)) / (t[k] - np.delete(t, k)))) for k in range(N + 1)))


@pytest.mark.parametrize(("own", "others", "m"), [((3,), (5,), 2), ((2, 4), (3, 1), 1), ((6,), (9,), 3)])
def test_the_remainder_of_one_variable_passes_through_the_others(own: Any, others: Any, m: int) -> None:
    """‖g − I_1 … I_V g‖ ≤ Σ_v Λ_1 … Λ_{v−1} ‖g − I_v g‖, the others first."""
    d, rho = len(own), 3.0
    maxima = [2.0 + v for v in range(2 * d)]
    order = [(others[c], maxima[d + c]) for _ in range(m) for c in range(d)] + list(zip(own, maxima, strict=False))
    wanted, factor = 0.0, 1.0
    for N, M in order:
        wanted += factor * 4 * M * rho**-N / (rho - 1)
        factor *= lebesgue(N)
    assert wanted <= remainder(own, others, m, [rho] * 2 * d, maxima)


# ---- dropped and changed coefficients

QUARTERS = {"own": 4, "others": 1, "tau": "3/4"}


def test_between_the_points_of_the_grid_it_is_larger(tmp_path: Path) -> None:
    """|T_3| = 1 at x = 1 and cos(π/8) at the zeros of T_4."""
    folder = written(tmp_path, T3.format("x"), 1, [0.0], maxima=(4e18,), grid=QUARTERS)
    assert 1 <= found(folder) <= math.cos(math.pi / 8) / math.cos(3 * math.pi / 8) * 1.0001


def test_degrees_beyond_the_grid_count_by_their_size(tmp_path: Path) -> None:
    """T_1 + T_3 is 2 at x = 1; a grid with τ = 1/4 knows of T_1."""
    folder = written(tmp_path, f"x + {T3.format('x')}", 1, [0.0], maxima=(4e18,), grid={**QUARTERS, "tau": "1/4"})
    assert found(folder) >= 2


PAIR = f"sum_others(y)*sum_others({T2.format('y')})"
PAIRED: dict[str, Any] = {
    "features": [[1], [2]],
    "products": [[0, 0], [1, 1]],
    "maxima": (4.0, 2e18),
    "degrees": (2, 5),
}


def test_an_orbit_counts_once_for_each_arrangement(tmp_path: Path) -> None:
    """(T_1 + T_1)(T_2 + T_2) = 4 at y = 1: 2 from the orbit of T_1 T_2, ½ + ½ each from those of T_1 and T_3."""
    folder = written(tmp_path, PAIR, 3, [0.0], **PAIRED)
    assert 4 <= found(folder) <= 4.0001


@pytest.mark.parametrize("change", [0.25, 1e-6])
def test_a_changed_coefficient(tmp_path: Path, change: float) -> None:
    folder = written(tmp_path, PAIR, 3, [1 + change], terms=[[0, 2]], **PAIRED)
    assert 4 * change <= found(folder) <= 4.001 * change


def test_orbits_beyond_the_degrees(tmp_path: Path) -> None:
    """S has T_9(x), of which interpolation with N = 4 knows nothing."""
    network = {"own": [[1], [9]], "terms": [[0, 0], [1, 0]]}
    folder = written(tmp_path, "x", 1, [1.0, 1e-3], maxima=(5e5,), **network)
    assert 1e-3 <= found(folder) <= 1.001e-3


def test_values_at_the_nodes_are_as_good_as_their_enclosures(tmp_path: Path) -> None:
    """f = x is known to 2⁻¹⁹ at the nodes ±√½, as it is written; S goes through the middles of what is known."""
    big, step = 3 * 2**32, 2.0**-19
    slope = round(math.sqrt(0.5) / step) * step * math.sqrt(2)
    source, network = f"(x + {big}) - {big}", {"own": [[1]], "degrees": (1, 0), "maxima": (2e10,)}
    parts = dict(check(written(tmp_path, source, 1, [slope], **network)).terms)
    assert step / 4 < abs(slope - 1) <= parts["dropped and rounded coefficients"]


@pytest.mark.parametrize("seed", range(3))
def test_the_expansion_errs_by_what_is_said(seed: int) -> None:
    """Entries in float64 against products of power sums in rationals, written out place by place."""
    random, m = np.random.default_rng(seed), 2
    data = {"type": "", "d": 1, "tokens": m + 1, "width": 1, "centre": ["0"], "radius": ["1"], "arithmetic": "float64"}
    data |= {"own": [[0]], "features": [[1], [2]], "products": [[0, 0], [0, 1], [1, 0], [1, 1], [3, 1]]}
    net = polynomial_of(data | {"terms": [[0, p] for p in range(6)]})
    weights = random.normal(size=(6, 1)) * 10.0 ** random.integers(-9, 9, size=(6, 1))
    exact: dict[tuple[int, ...], Fraction] = {}
    for (_, node), C in zip(net.terms.tolist(), weights[:, 0].tolist(), strict=True):
        part = {(0,) * m: Fraction(C)}
        while node:
            node, feature = net.products[node - 1].tolist()
            part = _times(part, int(net.features[feature, 0]))
        for key, value in part.items():
            exact[key] = exact.get(key, Fraction(0)) + value
    seen = expand(net, weights)
    off = [
        abs(Fraction(float(entry)) - exact[tuple(place)])
        for place, entry in zip(seen.others[:, :, 0].tolist(), seen.entries[:, 0], strict=True)
    ]
    assert max(off) > 0
    assert all(a <= Fraction(float(e)) for a, e in zip(off, seen.errors[:, 0], strict=True))


def _times(part: dict[tuple[int, ...], Fraction], beta: int) -> dict[tuple[int, ...], Fraction]:
    """Σ_j T_β(y_j) times a polynomial in T_{b_1}(y_1) … T_{b_m}(y_m)."""
    out: dict[tuple[int, ...], Fraction] = {}
    for (b, value), j in product(part.items(), range(2)):
        for new in (b[j] + beta, abs(b[j] - beta)):
            key = (*b[:j], new, *b[j + 1 :])
            out[key] = out.get(key, Fraction(0)) + value / 2
    return out


# ---- rounding

CENTRE = 2**24 + 1  # the nearest float32 is 2^24: (x − 2^24)/8 is off by 1/8
SHIFTED = (f"{CENTRE - 8}:{CENTRE + 8}", str(CENTRE), "8")
WAVE = f"(2*(({{0}} - {CENTRE})/8)**2 - 1)"


def lowest(folder: Path, n: int) -> float:
    """N where all tokens are at the lower end of the shifted box, where T_2 is 1 and 17/32 is computed."""
    with torch.no_grad():
        return float(load(folder).network(torch.full((1, n, 1), CENTRE - 8.0))[0, 0, 0])


def test_a_centre_that_is_no_float32_number(tmp_path: Path) -> None:
    """T_2(x) is off by 15/32; k²/8 = 1/2 is found."""
    network = {"own": [[2]], "arithmetic": "float32", "box": SHIFTED, "maxima": (2e12,)}
    folder = written(tmp_path, WAVE.format("x"), 1, [1.0], **network)
    assert abs(lowest(folder, 1) - 1) == 15 / 32
    assert 15 / 32 <= found(folder) <= 1 / 2 * 1.001


@pytest.mark.parametrize("factors", [1, 4])
def test_features_of_all_others_and_products_of_their_sums(tmp_path: Path, factors: int) -> None:
    """3 others are off by 15/32 each, q⁴ = 81 by 74: four times the error of one factor is not enough."""
    chain = {"features": [[2]], "products": [[k, 0] for k in range(factors)], "terms": [[0, factors]]}
    source, size = f"sum_others({WAVE.format('y')})**{factors}", 2e12**factors
    network = chain | {"arithmetic": "float32", "box": SHIFTED, "degrees": (0, 2 * factors)}
    folder = written(tmp_path, source, 4, [1.0], maxima=(100.0, 10 * size), **network)
    assert lowest(folder, 4) == (3 * 17 / 32) ** factors
    assert 3**factors - lowest(folder, 4) <= found(folder)


def sequential(values: np.ndarray) -> np.ndarray:
    """Σ from the first on in float32, one of the orders of which the certificate speaks: along the last axis."""
    total = np.zeros(values.shape[:-1], dtype=np.float32)
    for k in range(values.shape[-1]):
        total = total + values[..., k].astype(np.float32)
    return total


def test_the_sum_over_the_tokens_is_rounded(tmp_path: Path) -> None:
    """32 tokens z, one after the other: the roundings all go the same way for some z."""
    n = 32
    network = {"arithmetic": "float32", "terms": [[0, 1]], "degrees": (3, 3), "maxima": (40.0, 1e6)}
    folder = written(tmp_path, "sum_others(y)", n, [1.0], **network)
    z = np.linspace(0.5, 1, 20_001).astype(np.float32)
    got = sequential(np.repeat(z[:, None], n, 1)) - z
    off = np.abs(got.astype(np.float64) - (n - 1) * z.astype(np.float64)).max()
    others = (2 * (n + 1) + 4 * (n - 1)) * 2.0**-24  # features, the difference, the product with a coefficient
    assert others < off <= dict(check(folder).terms)["rounding"]


def test_the_sum_over_the_terms_is_rounded(tmp_path: Path) -> None:
    """1000 times a third, one after the other."""
    count, third = 1000, np.float32(1 / 3)
    value = count * Fraction(float(third))
    folder = written(tmp_path, f"{value} + 0*x", 1, [third] * count, arithmetic="float32", maxima=(400.0,))
    off = abs(Fraction(float(sequential(np.full(count, third)))) - value)
    assert 0 < off <= Fraction(found(folder))


def test_the_output_is_rounded(tmp_path: Path) -> None:
    """1 + 2⁻²⁴ lies between two float32 numbers."""
    c = 1 + 2.0**-24
    network = {"own": [[1]], "arithmetic": "mixed", "maxima": (5e5,)}
    folder = written(tmp_path, f"{Fraction(c)}*x", 1, [c], **network)
    with torch.no_grad():
        got = float(load(folder).network(torch.ones(1, 1, 1))[0, 0, 0])
    assert 2.0**-24 == abs(got - c) <= found(folder) <= 1.001 * 2.0**-24

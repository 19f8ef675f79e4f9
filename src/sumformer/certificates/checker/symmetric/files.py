"""config.json of a `SymmetricSumformer` and the constants of its certificate: values of the right form, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.certificates.checker.files import Tensors, read_described
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.json_values import fraction, has_keys, integer, items, multi_indices, number
from sumformer.errors import FileFormatError

MAX_DEGREE = 64  # of the interpolation
MAX_ORBITS = 20_000_000
MAX_POINTS = 60_000_000
MAX_TOKENS = 64
_KEYS = {"type", "d", "tokens", "width", "centre", "radius", "arithmetic", "own", "features", "products", "terms"}
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Polynomial:
    """ψ = Σ_t C_t T_{own[a_t]}(u) · node p_t; node 0 is 1, node i + 1 = parent · q_β, [parent, β] = products[i]."""

    d: int
    tokens: int
    width: int
    centre: tuple[Fraction, ...]
    radius: tuple[Fraction, ...]
    arithmetic: str
    own: Integers
    features: Integers
    products: Integers
    terms: Integers

    @property
    def m(self) -> int:
        return self.tokens - 1


@dataclass(frozen=True)
class Constants:
    """What the certificate records: degrees N, (ρ, M) for x's coordinates and then for y's, the grid, and sizes."""

    own: tuple[int, ...]
    others: tuple[int, ...]
    rhos: tuple[float, ...]
    maxima: tuple[float, ...]
    remainder: float
    orbits: int
    kept: int
    terms: int
    grid: tuple[int, int, Fraction] | None
    dropped: float
    coefficients: float


def read_polynomial(folder: Path) -> Polynomial:
    return read_described(folder, "a network of power sums", polynomial_of)


def polynomial_of(data: Any) -> Polynomial:
    """The polynomial that a configuration describes."""
    has_keys(data, _KEYS)
    d, n, width = (integer(data[key]) for key in ("d", "tokens", "width"))
    if not (1 <= d <= 8 and 1 <= n <= MAX_TOKENS and 1 <= width <= 1024):
        raise ValueError("expected 1 ≤ d ≤ 8, 1 ≤ tokens ≤ 64, 1 ≤ width")
    centre, radius = (tuple(fraction(v) for v in items(data[key])) for key in ("centre", "radius"))
    if len(centre) != d or len(radius) != d or not all(r > 0 for r in radius):
        raise ValueError(f"expected {d} centres and {d} radii > 0")
    if data["arithmetic"] not in ("float64", "float32", "mixed"):
        raise ValueError(f"unknown arithmetic {data['arithmetic']!r}")
    own, features = _table(data["own"], d), _table(data["features"], d)
    products, terms = _table(data["products"], 2), _table(data["terms"], 2)
    if len(np.unique(features, axis=0)) < len(features) or not features.any(axis=1).all():
        raise ValueError("expected features that differ and are not 0")
    depths = [0]
    for i, (parent, factor) in enumerate(products.tolist()):
        if parent > i or factor >= len(features):
            raise ValueError(f"product {i} refers to what does not exist")
        depths.append(depths[parent] + 1)
    if depths != sorted(depths):
        raise ValueError("expected products ordered by their number of factors")
    if len(terms) and not (terms[:, 0].max() < len(own) and terms[:, 1].max() <= len(products)):
        raise ValueError("a term refers to what does not exist")
    return Polynomial(d, n, width, centre, radius, data["arithmetic"], own, features, products, terms)


def _table(value: Any, columns: int) -> Integers:
    rows = multi_indices(value)
    if any(len(row) != columns for row in rows):
        raise ValueError(f"expected lists of {columns} integers")
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)


def read_constants(folder: Path, c: Certificate, net: Polynomial) -> Constants:
    try:
        return _constants(c.constants, net)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        path = folder / CERTIFICATE_FILE
        raise FileFormatError(path, f"the constants cannot be read ({type(error).__name__}: {error})") from error


def _constants(data: Mapping[str, Any], net: Polynomial) -> Constants:
    own, others = (tuple(integer(v) for v in items(data[key])) for key in ("own_degrees", "other_degrees"))
    if len(own) != net.d or len(others) != net.d or any(not 0 <= N <= MAX_DEGREE for N in own + others):
        raise ValueError(f"own_degrees, other_degrees: expected {net.d} integers from 0 to {MAX_DEGREE} each")
    ellipses = items(data["ellipses"])
    k = 2 * net.d if net.m else net.d
    for ellipse in ellipses:
        has_keys(ellipse, {"variable", "rho", "maximum"})
    if [e["variable"] for e in ellipses] != list(range(k)):
        raise ValueError("ellipses: expected one for each coordinate of x, then of y where there are others")
    numbers = [number(e[key]) for key in ("rho", "maximum") for e in ellipses]
    numbers += [number(data[key]) for key in ("remainder", "dropped", "coefficients")]
    if not all(v >= 0 for v in numbers):
        raise ValueError("expected numbers ≥ 0")
    grid = None
    if data["grid"] is not None:
        has_keys(data["grid"], {"own", "others", "tau"})
        grid = (integer(data["grid"]["own"]), integer(data["grid"]["others"]), fraction(data["grid"]["tau"]))
        if not (grid[0] >= 1 and grid[1] >= 1 and 0 < grid[2] < 1):
            raise ValueError("grid: expected numbers of points ≥ 1 and 0 < tau < 1")
        if grid[0] ** net.d * comb(grid[1] ** net.d + net.m - 1, net.m) > MAX_POINTS:
            raise ValueError(f"grid: more than {MAX_POINTS} points")
    if orbit_count(own, others, net.m) > MAX_ORBITS:
        raise ValueError(f"own_degrees, other_degrees: more than {MAX_ORBITS} orbits")
    return Constants(
        own,
        others,
        rhos=tuple(numbers[:k]),
        maxima=tuple(numbers[k : 2 * k]),
        remainder=numbers[-3],
        orbits=integer(data["orbits"]),
        kept=integer(data["kept"]),
        terms=integer(data["terms"]),
        grid=grid,
        dropped=numbers[-2],
        coefficients=numbers[-1],
    )


def orbit_count(own: tuple[int, ...], others: tuple[int, ...], m: int) -> int:
    """Coefficients of the interpolant, up to the order of the m others."""
    return prod(N + 1 for N in own) * comb(prod(N + 1 for N in others) + m - 1, m)


def weight_failures(tensors: Tensors, net: Polynomial) -> list[str]:
    """Exactly the tensor of coefficients, of the right shape and type, finite."""
    dtype, shape = np.dtype(np.float32 if net.arithmetic == "float32" else np.float64), (len(net.terms), net.width)
    if tensors.keys() != {"coefficients"}:
        return [f"weights: expected the tensor coefficients alone, got {', '.join(sorted(tensors)) or 'none'}"]
    found = tensors["coefficients"]
    if found.shape != shape or found.dtype != dtype:
        return [f"weights: coefficients should be {dtype} {shape}, is {found.dtype} {found.shape}"]
    return [] if bool(np.isfinite(found).all()) else ["weights: coefficients has entries that are not finite"]


def as_matrix(tensors: Tensors) -> Floats:
    return np.asarray(tensors["coefficients"], dtype=np.float64)

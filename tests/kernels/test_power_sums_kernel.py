"""Power sums: the kernel in Triton's interpreter, its PTX read line by line, the plan, and the twin."""

from __future__ import annotations

import re
from math import comb

import numpy
import pytest
import torch

from sumformer.kernels import power_sums as module
from sumformer.kernels.power_sums_blocks import by_blocks
from sumformer.kernels.power_sums_plan import FEATURE, FMS, FMS_ONE, MULTIPLY, TWICE, exponents, places, tiles
from sumformer.kernels.power_sums_ptx import carry_code, constraints, tokens_code
from sumformer.nn import PolynomialFeatures
from sumformer.nn.polynomial_features import multi_indices
from sumformer.nn.power_sums import power_sums

PLANS = [(1, 20), (2, 12), (2, 30), (3, 9), (4, 6), (4, 12)]


@pytest.fixture
def kernel(interpreted, monkeypatch):
    monkeypatch.setattr(module, "_interpreted", True)


def value_of(tile, d: int, t: numpy.ndarray) -> list[numpy.ndarray]:
    """What the list says, in float64."""
    values, out = [t[c] for c in range(d)], []
    for kind, i, j, k in tile.code:
        if kind == FEATURE:
            out.append(values[i] * (values[j] if j >= 0 else 1))
        elif kind == TWICE:
            values.append(2 * values[i])
        else:
            values.append(values[i] * values[j] - {MULTIPLY: 0, FMS: values[k], FMS_ONE: 1}[kind])
    return out


def run_ptx(text: str, arguments: list[float], outputs: int) -> list[float]:
    """The few instructions a tile is written in, in float64."""
    names = {f"${outputs + i}": v for i, v in enumerate(arguments)} | {"0fBF800000": -1.0}
    rule = {
        "add.rn.f32": lambda a, b: a + b,
        "sub.rn.f32": lambda a, b: a - b,
        "mul.rn.f32": lambda a, b: a * b,
        "fma.rn.f32": lambda a, b, c: a * b + c,
        "neg.f32": lambda a: -a,
    }
    for line in re.findall(r"(?:add|sub|mul|fma|neg)\.[^;]*", text):
        name, rest = line.split(" ", 1)
        target, *sources = rest.split(", ")
        names[target] = rule[name](*(names[s] for s in sources))
    return [names[f"${i}"] for i in range(outputs)]


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize(("d", "degree"), PLANS)
def test_a_plan_makes_every_feature_once(d, degree, chebyshev):
    assert list(exponents(d, degree)[1:]) == multi_indices(d, degree)
    plan = tiles(d, degree, chebyshev)
    rows = places(d, degree, chebyshev)
    assert set(rows) == set(exponents(d, degree)[1:])
    assert len(set(rows.values())) == comb(degree + d, d) - 1
    x = numpy.random.default_rng(0).uniform(-1, 1, (d, 3))
    table = numpy.polynomial.chebyshev.chebvander(x, degree) if chebyshev else x[..., None] ** numpy.arange(degree + 1)
    start = 0
    for tile in plan:
        size = len(tile.features)
        for turn in range(d):
            found = value_of(tile, d, numpy.roll(x, -turn, axis=0))
            for beta, row in rows.items():
                if start + turn * size <= row < start + (turn + 1) * size:
                    wanted = numpy.prod([table[c, :, b] for c, b in enumerate(beta)], axis=0)
                    assert numpy.allclose(found[row - start - turn * size], wanted, atol=1e-12)
        start += d * size


@pytest.mark.parametrize(("d", "degree"), [(1, 9), (2, 7), (4, 6)])
@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_text_says_what_the_list_says(d, degree, chebyshev, weighted):
    t = numpy.random.default_rng(0).uniform(-1, 1, (2, d))
    weights = [0.5, -2.0] if weighted else []
    for tile in tiles(d, degree, chebyshev):
        size = len(tile.features)
        sums = numpy.random.default_rng(1).uniform(-1, 1, size)
        got = run_ptx(tokens_code(tile, d, 2, weighted), [*sums, *t.flat, *weights], size)
        wanted = sums + sum(w * numpy.array(value_of(tile, d, y)) for w, y in zip(weights or [1, 1], t, strict=True))
        assert numpy.allclose(got, wanted, atol=1e-14)
        assert constraints(size, size + d).count("f") == 2 * size + d


@pytest.mark.parametrize("backward", [False, True])
def test_carrying_keeps_the_total(backward):
    high, low = [1.0, 2.0, -3.0], [0.25, -5.0, 0.125]
    got = run_ptx(carry_code(3, backward), [*high, *low], 6)
    assert got == [1.25, -3.0, -2.875, 0.0, 0.0, 0.0]


def check(x: torch.Tensor, degree: int, basis: str, keep: torch.Tensor | None = None) -> None:
    """1e-6 Σ|φ| for the sums, and what the features may be off by: 2 m² u a coordinate, or m u relative."""
    phi = PolynomialFeatures(x.shape[2], degree, basis).double()(x.double())
    phi = phi if keep is None else phi * keep.unsqueeze(-1)
    count = x.shape[1] if keep is None else keep.sum(1, keepdim=True)
    size = phi.abs().sum(1)
    off = degree * size if basis == "monomial" else 2.0 * x.shape[2] * degree**2 * count
    got = power_sums(x, degree, basis, keep=keep)
    assert ((got - phi.sum(1)).abs() <= 1e-6 * size + 2.0**-24 * off).all()


CASES = [(1, 5, "monomial"), (2, 5, "chebyshev"), (3, 3, "monomial"), (4, 2, "chebyshev")]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("d", "degree", "basis"), CASES)
@pytest.mark.parametrize("n", [1, 1100])
def test_the_kernel(d, degree, basis, n, monkeypatch):
    monkeypatch.setattr(module, "_UNROLL", 2)
    monkeypatch.setattr(module, "_CHAIN", 2)
    x = torch.rand(2, n, d, generator=torch.Generator().manual_seed(n))
    check(x, degree, basis)
    keep = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) > 0.2
    check(x, degree, basis, keep)
    hidden = torch.where(keep.unsqueeze(-1), x, torch.nan)
    assert torch.equal(power_sums(hidden, degree, basis, keep=keep), power_sums(x, degree, basis, keep=keep))


def hard(name: str, n: int, d: int) -> torch.Tensor:
    """Inputs whose sums cancel, or whose additions all round the same way."""
    i = torch.arange(n).view(1, n, 1).expand(1, n, d)
    if name == "equal":
        return torch.full((1, n, d), 0.7)
    if name == "corners":
        return (i % 2).float() * (1 - 1e-6) + 1e-7
    if name == "alternating":
        return torch.where(i % 2 == 0, 0.5 + 0.25 / (i + 1), 0.5 - 0.25 / (i + 1))
    return torch.where(i % 15 == 0, 1.0, 2.0**-12)  # a large token, then fourteen too small to move it


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", ["equal", "corners", "alternating", "large first"])
@pytest.mark.parametrize(("degree", "basis"), [(3, "monomial"), (4, "chebyshev")])
def test_the_kernel_on_hard_inputs(name, degree, basis):
    check(hard(name, 4001, 2), degree, basis)


@pytest.mark.parametrize("name", ["equal", "corners", "alternating", "large first"])
@pytest.mark.parametrize(("degree", "basis"), [(12, "monomial"), (12, "chebyshev")])
def test_the_twin_on_hard_inputs(name, degree, basis):
    check(hard(name, 4001, 3), degree, basis)


def test_chunks_and_groups_do_not_matter(monkeypatch):
    x = torch.rand(70, 9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    keep = torch.rand(70, 9, generator=torch.Generator().manual_seed(1)) > 0.5
    wanted = power_sums(x, 5, "chebyshev", keep=keep)
    monkeypatch.setattr(module, "_CHUNK", 128)
    assert (power_sums(x, 5, "chebyshev", keep=keep) - wanted).abs().max() <= 1e-13


def test_opcheck():
    x = torch.rand(2, 20, 2)
    keep = torch.rand(2, 20) > 0.5
    checks = ("test_schema", "test_faketensor")
    for k in (None, keep):
        torch.library.opcheck(module.power_sums, (x, k, 3, True, 0.5, 2.0), test_utils=checks)


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_blocks_of_columns_give_the_same_sums(d, chebyshev):
    x = torch.rand(2, 500, d, dtype=torch.float64, generator=torch.Generator().manual_seed(d))
    keep = torch.rand(2, 500, generator=torch.Generator().manual_seed(1)) > 0.3
    for mask in (None, keep):
        got = by_blocks(x, mask, 7, chebyshev, 0.5, 2.0)
        assert torch.allclose(got, module.power_sums(x, mask, 7, chebyshev, 0.5, 2.0), rtol=1e-12, atol=1e-11)

"""Power sums: the cover, the PTX programs run instruction by instruction, and the twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy
import pytest
import torch
from ptx_machine import launch
from torch import Tensor

from sumformer.kernels import power_sums as module
from sumformer.kernels.power_sums_blocks import by_blocks
from sumformer.kernels.power_sums_cover import Cover, Exponents, cover, direct_cover, exponents
from sumformer.kernels.power_sums_direct import BLOCK, CHAIN, DEEP
from sumformer.kernels.power_sums_products import products_bytes
from sumformer.nn import PolynomialFeatures
from sumformer.nn.polynomial_features import multi_indices
from sumformer.nn.power_sums import power_sums

PLANS = [(1, 1), (1, 20), (1, 64), (2, 12), (2, 30), (3, 9), (4, 6), (4, 9)]
U = 2.0**-24


@pytest.fixture(params=["products", "direct", "twin"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The operator with its programs emulated: the one of products for all, or as on a GPU; or what a CPU does."""
    texts: list[str] = []

    def emulate(programs: int, text: str, arguments: tuple[Any, ...], resident: int, warps: int) -> None:
        texts.append(text)
        launch(programs, text, arguments, warps)

    monkeypatch.setattr(module, "_emulated", request.param != "twin")
    monkeypatch.setattr(module, "_launch", emulate)
    monkeypatch.setattr(module, "FEW", 0 if request.param == "products" else module.FEW)
    yield request.param
    assert bool(texts) == (request.param != "twin")
    assert request.param != "products" or all("mma.sync" in text for text in texts)


def features(x: Tensor, degree: int, basis: str, ends: tuple[float, float] = (0.0, 1.0)) -> Tensor:
    found: Tensor = PolynomialFeatures(x.shape[2], degree, basis, *ends).double()(x.double())
    return found


def tokens(batch: int, n: int, d: int) -> Tensor:
    return torch.rand(batch, n, d, generator=torch.Generator().manual_seed(0))


def shown(batch: int, n: int) -> Tensor:
    return torch.rand(batch, n, generator=torch.Generator().manual_seed(1)) > 0.2


def check(x: Tensor, degree: int, basis: str, keep: Tensor | None = None, ends: tuple[float, float] = (0, 1)) -> None:
    """1e-6 Σ|φ| for the sums, and what the features may be off by: 2 m² u a coordinate, or m u relative."""
    phi = features(x, degree, basis, ends)
    phi = phi if keep is None else phi * keep.unsqueeze(-1)
    count = x.shape[1] if keep is None else keep.sum(1, keepdim=True)
    size = phi.abs().sum(1)
    betas = torch.tensor(multi_indices(x.shape[2], degree), dtype=torch.float64)
    off = betas.sum(1) * size if basis == "monomial" else (2 * (betas**2).sum(1) + 3) * count
    got = power_sums(x, degree, basis, *ends, keep)
    assert ((got - phi.sum(1)).abs() <= 1e-6 * size + U * off).all()


def products_of(plan: Cover, value: Callable[[Exponents], Any]) -> Any:
    """The sums for one token, in the order in which the programs hold them, and where each is."""
    if not plan.wide:
        return numpy.array([value(a) * value(b) for a, b in plan.pairs]), plan.pairs
    sums = numpy.full((len(plan.products), 2, 8, 8, 3), numpy.nan)
    for number, (*halves, third) in enumerate(plan.products):
        for half, rows in enumerate(halves):
            assert plan.sets[rows][0] != plan.sets[third][0]
            for r, row in enumerate(plan.sets[rows][1]):
                for c, column in enumerate(plan.sets[third][1]):
                    sums[number, half, r, c] = value(row) * value(column)
    return sums.reshape(-1, 3), plan.entries


@pytest.mark.parametrize("make", [cover, direct_cover])
@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize(("d", "degree"), PLANS)
def test_a_cover_makes_every_feature(make: Callable[..., Cover], d: int, degree: int, chebyshev: bool) -> None:
    betas = multi_indices(d, degree)
    assert list(exponents(d, degree)[1:]) == betas
    x = numpy.random.default_rng(0).uniform(-1, 1, (d, 3))
    table = numpy.polynomial.chebyshev.chebvander(x, degree) if chebyshev else x[..., None] ** numpy.arange(degree + 1)

    def value(beta: Exponents) -> Any:
        return prod(table[c, :, b] for c, b in enumerate(beta))

    plan = make(d, degree, chebyshev)
    assert all(1 <= len(rows) <= 8 for _, rows in plan.sets)
    sums, entries = products_of(plan, value)
    assert len(set(entries.values())) == len(entries)
    assert all(0 <= place < len(sums) for place in entries.values())
    assert len(sums) == (128 * len(plan.products) if make is cover else len(betas))
    for beta, recipe in zip(betas, plan.recipes(chebyshev, entries), strict=True):
        got = sum(factor * sums[place] for place, factor in recipe.items())
        assert numpy.allclose(got, value(beta), rtol=0, atol=1e-12)


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize(("d", "degree", "bound"), [(2, 12, 1), (2, 60, 16), (3, 12, 5), (4, 6, 4), (4, 12, 18)])
def test_a_cover_has_few_products(d: int, degree: int, bound: int, chebyshev: bool) -> None:
    found = cover(d, degree, chebyshev)
    assert len(found.products) <= bound
    assert products_bytes(found) <= 48 * 1024


def error_of(row: Exponents, plan: Cover) -> float:
    """In u: the product of a row, and its values where the coordinate is split; T_(hb) is T_b of T_h."""
    total = max(0.0, sum(k > 0 for k in row) - 1.0)
    for k, h in zip(row, plan.radices, strict=True):
        if 1 < h <= plan.degree:
            outer, inner = (k // h, h) if k >= h else (1, k)
            total += k > 0 if plan.wide else outer**2 * inner * (inner - 1) / 2 + outer * (outer - 1) / 2
    return total


@pytest.mark.parametrize("make", [cover, direct_cover])
@pytest.mark.parametrize(("d", "degree"), [*PLANS, (2, 19), (2, 60), (3, 12), (4, 12)])
def test_chebyshev_sums_stay_within_what_is_stated(make: Callable[..., Cover], d: int, degree: int) -> None:
    """Σ |factor| · (A and B, and the roundings of a sum in float32), and what is whole: 2 Σ β_c² for an exact t."""
    plan = make(d, degree, True)
    entries = plan.entries if plan.wide else plan.pairs
    rows = {place: pair for pair, place in entries.items()}
    for beta, recipe in zip(multi_indices(d, degree), plan.recipes(True, entries), strict=True):
        off = sum(k * (k - 1) / 2 for k, h in zip(beta, plan.radices, strict=True) if not 1 < h <= degree)
        summed = 0 if plan.wide or len(recipe) == 1 else CHAIN + DEEP
        for place, factor in recipe.items():
            off += abs(factor) * (summed + sum(error_of(row, plan) for row in rows[place]))
        assert off <= plan.error(beta) <= 2 * sum(k * k for k in beta)


@pytest.mark.parametrize(
    ("d", "degree", "n"),
    [(1, 1, 33), (1, 5, 150), (2, 3, 100), (2, 12, 70), (3, 2, 64), (3, 5, 150), (4, 2, 31), (2, 3, 1871)],
)
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.usefixtures("kernel")
def test_the_kernel(d: int, degree: int, basis: str, n: int) -> None:
    x, keep = tokens(2, n, d), shown(2, n)
    check(x, degree, basis)
    check(x, degree, basis, keep)
    hidden = torch.where(keep.unsqueeze(-1), x, torch.nan)
    with_mask = power_sums(hidden, degree, basis, keep=keep)
    assert torch.equal(with_mask, power_sums(x, degree, basis, keep=keep))
    assert torch.equal(with_mask, power_sums(hidden, degree, basis, keep=keep))
    check(x[:, :1], degree, basis)
    check(torch.cat([x[0, 0, :1], x[0].flatten()])[1:].view(1, n, d), degree, basis)  # not aligned
    assert (power_sums(hidden, degree, basis, keep=torch.zeros_like(keep)) == 0).all()


@pytest.mark.parametrize(("d", "degree"), [(1, 40), (1, 64), (2, 17), (2, 60), (3, 8), (3, 12), (4, 5), (4, 6), (4, 9)])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.usefixtures("kernel")
def test_the_kernel_on_high_degrees(d: int, degree: int, basis: str) -> None:
    check(2 * tokens(1, 70, d) - 1, degree, basis, shown(1, 70), (-1, 1))
    check(2 * tokens(1, 33, d) - 1, degree, basis, None, (-1, 1))


@pytest.mark.parametrize(("lower", "upper"), [(-0.1, 1.2), (7.77, 7.78), (1e10, 1e10 + 1e4), (-3e-5, 1e-5)])
@pytest.mark.usefixtures("kernel")
def test_intervals(lower: float, upper: float) -> None:
    x = (lower + (upper - lower) * tokens(1, 100, 2).double()).float().clamp(lower, upper)
    check(x, 7, "chebyshev", None, (lower, upper))


def hard(name: str, n: int, d: int) -> Tensor:
    """Inputs whose sums cancel, or whose additions all round the same way."""
    i = torch.arange(n).view(1, n, 1).expand(1, n, d)
    if name != "alternating":
        return torch.full((1, n, d), 0.7) if name == "equal" else (i % 2).float() * (1 - 1e-6) + 1e-7
    return torch.where(i % 2 == 0, 0.5 + 0.25 / (i + 1), 0.5 - 0.25 / (i + 1))


@pytest.mark.parametrize("name", ["equal", "corners", "alternating"])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.usefixtures("kernel")
def test_the_kernel_on_hard_inputs(name: str, basis: str) -> None:
    check(hard(name, 1401, 2), 8, basis)


@pytest.mark.parametrize("big", [724.0, 725.0, 1448.0, 1449.0, -1e9, 3e38])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize("degree", [1, 12])
def test_a_huge_token(kernel: str, basis: str, big: float, degree: int) -> None:
    """Sums below the largest float32 are right; beyond, they are right or not finite."""
    for big_first in (True, False):
        x = tokens(2, 70, 2)
        x[0, 40] = torch.tensor([big, 1.5] if big_first else [1.5, big])
        phi = features(x, degree, basis)
        got, size = power_sums(x, degree, basis), phi.abs().sum(1)
        betas = torch.tensor(multi_indices(2, degree), dtype=torch.float64)
        off = (1e-6 + 3 * U * betas.sum(1)) * size + 70 * U * (2 * (betas**2).sum(1) + 3)
        right = (got - phi.sum(1)).abs() <= off
        assert right[size < 2.0**127].all()
        assert (right | ~got.isfinite()).all()
        assert kernel == "direct" or basis == "chebyshev" or not got.isnan().any()


@pytest.mark.usefixtures("kernel")
def test_what_is_beside_huge_tokens_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sums are exact here, and no float32 could hold those of all tokens."""
    monkeypatch.setattr(module, "_programs", lambda *_: 1)
    x = torch.ones(1, 8 * BLOCK + 5, 2)
    x[0, : 2 * BLOCK, 0] = 2.0**22
    assert torch.equal(power_sums(x, 7)[:, :2], x.double().sum(1))


@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize(("d", "degree"), [(2, 1), (2, 9), (3, 8), (3, 12)])
@pytest.mark.usefixtures("kernel")
def test_a_token_that_is_not_finite(bad: float, basis: str, d: int, degree: int) -> None:
    """It shows in all sums that hold it, and in no others."""
    betas = torch.tensor(multi_indices(d, degree), dtype=torch.float64)
    for c in range(d):
        x = 0.1 + 0.9 * tokens(2, 40, d)
        phi = features(x, degree, basis).sum(1)
        x[0, 33, c] = bad
        got = power_sums(x, degree, basis)
        held = torch.stack([betas[:, c] > 0, betas[:, c] < 0])
        assert torch.equal(got.isfinite(), ~held)
        assert abs(bad) == torch.inf or got[held].isnan().all()
        off = 1e-6 * phi.abs() + 40 * U * (2 * (betas**2).sum(1) + 3)
        assert ((got - phi).abs() <= off)[~held].all()


@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize("tiny", [0.0, -0.0, 1e-45, 1e-40, 2.0**-126, 3e-38])
@pytest.mark.usefixtures("kernel")
def test_zeros_and_the_smallest_numbers(basis: str, tiny: float) -> None:
    x = torch.full((1, 33, 2), tiny)
    got = power_sums(x, 7, basis, -1.0, 1.0)[0]
    assert (got[:2] == x[0].double().sum(0)).all()
    assert abs(got[multi_indices(2, 7).index((1, 1))]) <= 34 * x[0, 0, 0].double() ** 2


def some_sums(batch: int, programs: int) -> tuple[Tensor, int, Tensor, Tensor]:
    """Of programs, 64 each, and recipes of four for five features; whole numbers, which any order adds alike."""
    generator = torch.Generator().manual_seed(0)
    partial = torch.randint(-99, 99, (batch * programs, 64), generator=generator).double()
    places = torch.randint(64, (5, 4), generator=generator, dtype=torch.int32)
    return partial, batch, places, torch.randint(-3, 4, (5, 4), generator=generator).double()


def test_sums_are_put_together() -> None:
    partial, batch, places, factors = some_sums(3, 5)
    wanted = torch.zeros(3, 5, dtype=torch.float64)
    for program, i, j in product(range(15), range(5), range(4)):
        wanted[program // 5, i] += factors[i, j] * partial[program, places[i, j]]
    assert torch.equal(module._added(partial, batch, places, factors), wanted)


@pytest.mark.parametrize("rows", [64, 4])
@pytest.mark.usefixtures("interpreted")
def test_the_kernels_that_put_sums_together(rows: int) -> None:
    """2 parts, or 18, of which sixteen are added at a time."""
    from sumformer.kernels.power_sums_triton import add_programs, put_together

    partial, batch, places, factors = some_sums(3, 70)
    parts = -(-70 // rows)
    sums = torch.full((batch, parts, 64), torch.nan, dtype=torch.float64)
    add_programs[(sums.numel() // 32,)](partial, sums, 70, parts, 64, ROWS=rows, COLUMNS=32, num_warps=4)
    out = torch.full((batch, 5), torch.nan, dtype=torch.float64)
    put_together[(out.numel(),)](sums, places, factors, out, parts, 64, 5, PARTS=16, TERMS=4, num_warps=1)
    assert torch.equal(out, module._added(partial, batch, places, factors))


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_opcheck(d: int, chebyshev: bool) -> None:
    """Strides are those that compiled code is told."""
    checks = ("test_schema", "test_faketensor")
    for keep in (None, shown(2, 20)):
        for x in (tokens(2, 20, d), tokens(2, 20, d).double()):
            torch.library.opcheck(module.power_sums, (x, keep, 3, chebyshev, 0.5, 2.0), test_utils=checks)


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_blocks_of_columns_give_the_same_sums(d: int, chebyshev: bool) -> None:
    x = tokens(2, 500, d).double()
    for mask in (None, shown(2, 500)):
        got = by_blocks(x, mask, 7, chebyshev, 0.5, 2.0)
        assert torch.allclose(got, module.power_sums(x, mask, 7, chebyshev, 0.5, 2.0), rtol=1e-12, atol=1e-11)

"""Power sums: the plan, its PTX run instruction by instruction, and the twin."""

from __future__ import annotations

from math import comb

import numpy
import pytest
import torch
from tests.kernels.ptx_machine import Program

from sumformer.kernels import power_sums as module
from sumformer.kernels.power_sums_blocks import by_blocks
from sumformer.kernels.power_sums_plan import FEATURE, FMS, FMS_TWO, MULTIPLY, exponents, most, recipes, tiles, turns
from sumformer.kernels.power_sums_ptx import THREADS
from sumformer.nn import PolynomialFeatures
from sumformer.nn.polynomial_features import multi_indices
from sumformer.nn.power_sums import power_sums

PLANS = [(1, 1), (1, 20), (1, 64), (2, 12), (2, 30), (3, 9), (4, 6), (4, 9)]


def emulate(grid: tuple[int, int], launches: list) -> None:
    launches[0][1][2].fill_(torch.nan)
    for text, arguments, _ in launches:
        arrays = [tensor.view(torch.uint8).numpy().reshape(-1) for tensor in arguments[:3]]
        places = [tensor.data_ptr() for tensor in arguments[:3]]
        numbers = [*places, *arguments[3:8], *(numpy.float32(v) for v in arguments[8:])]
        for cta in range(grid[0]):
            for turn in range(grid[1]):
                Program(numbers, dict(zip(places, arrays, strict=True)), (cta, turn)).run(text)


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(module, "_emulated", True)
    monkeypatch.setattr(module, "_launch", emulate)


def value_of(tile, d: int, t: numpy.ndarray) -> list[numpy.ndarray]:
    """What the list says, in float64."""
    values, out = [t[c] for c in range(d)], []
    for kind, i, j, k in tile.code:
        if kind == FEATURE:
            out.append(values[i] * (values[j] if j >= 0 else 1))
        else:
            values.append(values[i] * values[j] - {MULTIPLY: 0, FMS: values[k], FMS_TWO: 2}[kind])
    return out


@pytest.mark.parametrize("chebyshev", [False, True])
@pytest.mark.parametrize(("d", "degree"), PLANS)
def test_a_plan_makes_every_feature(d, degree, chebyshev):
    assert list(exponents(d, degree)[1:]) == multi_indices(d, degree)
    x = numpy.random.default_rng(0).uniform(-1, 1, (d, 3))
    rows = []
    for tile in tiles(d, degree, chebyshev):
        assert len(tile.features) == len(set(tile.features)) <= most(chebyshev)
        around = turns(d, degree, chebyshev)
        for turn in range(around):
            found = value_of(tile, d, (1 + chebyshev) * numpy.roll(x, -turn * d // around, axis=0))
            rows += [found[tile.slots.index(slot)] for slot in range(len(found))]
    table = numpy.polynomial.chebyshev.chebvander(x, degree) if chebyshev else x[..., None] ** numpy.arange(degree + 1)
    plan = recipes(d, degree, chebyshev)
    assert len({row for row, _, _ in plan}) == comb(degree + d, d) - 1
    direct = {row for row, minus, _ in plan if minus < 0}
    for beta, (row, minus, scale) in zip(exponents(d, degree)[1:], plan, strict=True):
        assert minus in direct or minus == -1
        wanted = numpy.prod([table[c, :, b] for c, b in enumerate(beta)], axis=0)
        assert numpy.allclose(scale * (rows[row] - (rows[minus] if minus >= 0 else 0)), wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("d", "degree", "chebyshev", "bound"),
    [(1, 64, False, 1.23), (2, 12, False, 1.2), (4, 6, False, 1.29), (1, 64, True, 1.36), (2, 12, True, 1.28)],
)
def test_a_plan_takes_few_operations(d, degree, chebyshev, bound):
    operations = turns(d, degree, chebyshev) * sum(len(tile.code) for tile in tiles(d, degree, chebyshev))
    assert operations <= bound * (comb(degree + d, d) - 1)


def errors_of(tile, d: int) -> dict[tuple[int, ...], float]:
    """β → f: what the values that a feature is the product of are off by, in u, where |T_k| ≤ 1."""
    error, out = [0.0] * d, []
    for kind, i, j, k in tile.code:
        if kind == FEATURE:
            out.append(error[i] + (error[j] if j >= 0 else 0))
        elif kind == MULTIPLY:
            error.append(error[i] + error[j] + 1)
        else:
            error.append(2 * (error[i] + error[j]) + (error[k] if kind == FMS else 0) + 1)
    return dict(zip(tile.features, out, strict=True))


@pytest.mark.parametrize(("d", "degree"), PLANS)
def test_chebyshev_sums_stay_within_what_is_stated(d, degree):
    """16.7 Σ|φ| + 2 Σ β_c², of which 1.9 are used; one chain of r periods has 28 r + 1.2 roundings."""
    sums = {}
    for tile in tiles(d, degree, True):
        errors = errors_of(tile, d)
        for beta, less, rest in zip(tile.features, tile.minus, tile.rest, strict=True):
            sums[beta] = (errors[beta], 28 * rest + 1.2 if rest else 16.2, less)
    for beta, (error, roundings, less) in sums.items():
        stated = 1.9 * sum(b * b for b in beta)
        if less is None:
            assert max(0, roundings - 16.7) + error <= stated
        else:
            assert sums[less][2] is None
            assert 2 * (roundings + error) + sum(sums[less][:2]) <= stated


@pytest.mark.parametrize(("d", "degree"), PLANS)
def test_sums_of_monomials_never_rest(d, degree):
    assert not any(rest for tile in tiles(d, degree, False) for rest in tile.rest)


def check(x: torch.Tensor, degree: int, basis: str, keep: torch.Tensor | None = None) -> None:
    """1e-6 Σ|φ| for the sums, and what the features may be off by: 2 m² u a coordinate, or m u relative."""
    phi = PolynomialFeatures(x.shape[2], degree, basis).double()(x.double())
    phi = phi if keep is None else phi * keep.unsqueeze(-1)
    count = x.shape[1] if keep is None else keep.sum(1, keepdim=True)
    size = phi.abs().sum(1)
    betas = torch.tensor(multi_indices(x.shape[2], degree), dtype=torch.float64)
    off = betas.sum(1) * size if basis == "monomial" else (2 * (betas**2).sum(1) + 3) * count
    got = power_sums(x, degree, basis, keep=keep)
    assert ((got - phi.sum(1)).abs() <= 1e-6 * size + 2.0**-24 * off).all()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize(("d", "degree", "n"), [(1, 5, 11000), (2, 3, 9000), (3, 2, 9000), (4, 2, 9000)])
def test_the_kernel(d, degree, basis, n):
    x = torch.rand(2, n, d, generator=torch.Generator().manual_seed(n))
    check(x, degree, basis)
    keep = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) > 0.2
    check(x, degree, basis, keep)
    hidden = torch.where(keep.unsqueeze(-1), x, torch.nan)
    assert torch.equal(power_sums(hidden, degree, basis, keep=keep), power_sums(x, degree, basis, keep=keep))
    check(x[:, :1], degree, basis)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("d", "degree", "basis"),
    [
        (1, 40, "chebyshev"),
        (2, 13, "monomial"),
        (2, 17, "chebyshev"),
        (3, 8, "chebyshev"),
        (4, 5, "monomial"),
        (4, 5, "chebyshev"),
        (4, 6, "chebyshev"),
    ],
)
def test_the_kernel_with_turns_and_loops(d, degree, basis):
    around = turns(d, degree, basis == "chebyshev")
    block = 28 * THREADS // (1 if around == 3 else around)
    n = (25 if d == 1 else 5) * block + 77  # two periods for the first two programs of three, or nine, and some tokens
    x = torch.rand(1, n, d, generator=torch.Generator().manual_seed(d))
    check(x, degree, basis)
    if d == 2:
        check(x, degree, basis, torch.rand(1, n, generator=torch.Generator().manual_seed(1)) > 0.2)
        assert torch.equal(power_sums(x, degree, basis), power_sums(x, degree, basis))


@pytest.mark.usefixtures("kernel")
def test_what_a_carry_leaves_is_kept(monkeypatch):
    """28 · 2²² and then 28 again and again, half a unit of its last place beside a multiple: exact in two numbers."""
    monkeypatch.setattr(module, "_programs", lambda *_: 1)
    x = torch.ones(1, 28 * THREADS * 6 + 5, 1)
    x[:, : 28 * THREADS] = 2.0**22
    assert power_sums(x, 1).item() == x.double().sum().item()


@pytest.mark.usefixtures("kernel")
def test_a_wide_interval_is_mapped_in_two_steps():
    x = torch.rand(1, 300, 2, generator=torch.Generator().manual_seed(0))
    for lower, upper in [(-0.1, 1.2), (-1.0, 1.0)]:
        with_kernel = power_sums(x, 4, "chebyshev", lower, upper)
        t = (x.double() - (lower + upper) / 2) * 2 / (upper - lower)
        wanted = PolynomialFeatures(2, 4, "chebyshev").double()((t + 1) / 2).sum(1)
        assert (with_kernel - wanted).abs().max() <= 300 * 2.0**-24 * 4 * 2 * 16


@pytest.mark.usefixtures("interpreted")
def test_the_sum_over_programs():
    from sumformer.kernels.power_sums_triton import add_programs

    partial = torch.rand(6, 2 * 300, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([[0, 3, 5], [-1, 4, -1]], dtype=torch.int32)
    scales = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)
    out = torch.empty(2, 3, dtype=torch.float64)
    add_programs[(6,)](partial, rows, scales, out, 600, 300, 3, BLOCK=256, num_warps=4)
    assert torch.allclose(out, module._added(partial, rows, scales, 2), rtol=0, atol=1e-12)
    assert torch.allclose(out[1, 1], 0.5 * (partial[3, 300:] - partial[4, 300:]).sum(), rtol=0, atol=1e-12)


def hard(name: str, n: int, d: int) -> torch.Tensor:
    """Inputs whose sums cancel, or whose additions all round the same way."""
    i = torch.arange(n).view(1, n, 1).expand(1, n, d)
    if name == "equal":
        return torch.full((1, n, d), 0.7)
    if name == "corners":
        return (i % 2).float() * (1 - 1e-6) + 1e-7
    if name == "alternating":
        return torch.where(i % 2 == 0, 0.5 + 0.25 / (i + 1), 0.5 - 0.25 / (i + 1))
    # for each thread a large token of both chains, then thirteen too small to move it
    return torch.where(i // THREADS % 28 < 2, 1.0, 2.0**-12)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", ["equal", "corners", "alternating", "large first"])
@pytest.mark.parametrize(("degree", "basis"), [(3, "monomial"), (4, "chebyshev")])
def test_the_kernel_on_hard_inputs(name, degree, basis):
    check(hard(name, 11001, 2), degree, basis)


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

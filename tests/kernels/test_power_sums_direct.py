"""The program of few features where only it can go wrong: chains, lanes, shares, and how t is rounded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from ptx_machine import launch

from sumformer.errors import InputError
from sumformer.kernels import power_sums as module
from sumformer.kernels.power_sums_cover import exponents
from sumformer.kernels.power_sums_direct import BLOCK, CHAIN, DEEP, WARPS, parts
from sumformer.nn.power_sums import power_sums

U = 2.0**-24


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_emulated", True)
    monkeypatch.setattr(
        module, "_launch", lambda programs, text, arguments, _, warps: launch(programs, text, arguments, warps)
    )
    monkeypatch.setattr(module, "_programs", lambda *_: 1)
    return


def test_the_roundings_stay_within_the_contract() -> None:
    """Those of a chain, and of lanes that are added in float32."""
    assert (1 + U) ** (CHAIN + DEEP) - 1 <= 0.98e-6


@pytest.mark.parametrize("n", [6 * BLOCK, BLOCK - 1, 2 * BLOCK - 1])
def test_what_is_just_too_small_is_lost_seldom(n: int) -> None:
    """Each token but the first of a lane is rounded away, or up, wherever it is added to a number near 1."""
    x = torch.full((1, n, 1), 1.01 * U)
    x[0, :128:4] = 1
    wanted = x.double().sum(1)
    assert (power_sums(x, 1) - wanted).abs() <= (CHAIN + DEEP) * U * wanted


@pytest.mark.parametrize(("d", "degree"), [(2, 2), (3, 4), (4, 6)])
def test_every_chain_is_added(d: int, degree: int) -> None:
    """All sums are exact here, and a float32 of the first chains could not hold what follows."""
    assert (len(parts(module.plan_of(d, degree, False))) > 1) == (degree == 6)
    x = torch.ones(1, 9 * BLOCK + 5, d)
    x[0, : 2 * BLOCK] = x[0, 6 * BLOCK : 7 * BLOCK] = 2.0 ** (22 // degree)
    betas = torch.tensor(exponents(d, degree)[1:], dtype=torch.float64)
    large, count = 3 * BLOCK, x.shape[1]
    wanted = large * 2.0 ** (22 // degree * betas.sum(1)) + (count - large)
    assert torch.equal(power_sums(x, degree)[0], wanted)


@pytest.mark.parametrize("programs", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 31, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 33, 7 * BLOCK + 4, 13 * BLOCK + 2])
def test_every_token_is_seen_once(n: int, d: int, programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that begin at a multiple of 16 bytes, and others."""
    monkeypatch.setattr(module, "_programs", lambda *_: min(programs, -(-n // (WARPS * 32))))
    x = torch.randint(-1, 2, (2, n, d), generator=torch.Generator().manual_seed(n)).float()
    keep = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) > 0.3
    betas = exponents(d, 2)[1:]
    for mask in (None, keep):
        y = x.double() if mask is None else x.double() * mask.unsqueeze(-1)
        wanted = [(y ** torch.tensor(beta)).prod(-1).sum(1) for beta in betas]
        assert torch.equal(power_sums(x, 2, keep=mask), torch.stack(wanted, 1))


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.1, 1.1), (0.0, 2 / 3), (-0.1, 1.2), (-1.0, 1.0)])
def test_t_is_rounded_once(ends: tuple[float, float]) -> None:
    lower, upper = ends
    x = lower + (upper - lower) * torch.rand(60, 1, 1, generator=torch.Generator().manual_seed(0))
    centre, inverse = (lower + upper) / 2, 2 / (upper - lower)
    wanted = (x.double() * inverse - centre * inverse).float().flatten()
    assert torch.equal(power_sums(x, 1, "chebyshev", lower, upper)[:, 0].float(), wanted)


def test_products_are_not_rounded_before_they_are_added() -> None:
    """x y over two tokens of a lane is 2⁻²⁶, of which a product rounded to float32 leaves nothing."""
    first, second = (1.0, -(1 + 2.0**-12)), (1 + 2.0**-13, 1 + 2.0**-13)
    x = torch.zeros(1, BLOCK, 2)
    x[0, :64:2], x[0, 1:64:2] = torch.tensor(first), torch.tensor(second)  # a lane's two tokens side by side
    plan = module.plan_of(2, 4, False)
    a, b = next(pair for pair in plan.pairs if tuple(map(sum, zip(*pair, strict=True))) == (1, 1))
    assert sum(a) == sum(b) == 1  # one product of two values, in one multiply-add
    place = exponents(2, 4)[1:].index((1, 1))
    assert power_sums(x, 4)[0, place] == 32 * 2.0**-26


def test_no_derivatives_in_forward_mode() -> None:
    x = torch.rand(1, 5, 2)
    with pytest.raises(InputError, match="derivatives"):
        torch.func.jvp(lambda y: power_sums(y, 2), (x,), (x,))


def test_nothing_is_put_on_the_default_device() -> None:
    x = torch.rand(1, 40, 2)
    wanted = power_sums(x, 3, "chebyshev")
    with torch.device("meta"):
        assert torch.equal(power_sums(x, 3, "chebyshev"), wanted)

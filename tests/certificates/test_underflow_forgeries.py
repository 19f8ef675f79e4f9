"""Bounds that once underflowed to 0 between a small factor and a large one (claimed 2e-9 and 2e-11)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from mesh_folders import OF_A_SUMFORMER, MeshKernelSpec, Spec, term, write
from tampered import Tampered

from sumformer import target
from sumformer.certificates.certificate import TORCH_FUNCTIONS
from sumformer.certificates.checker import check
from sumformer.certificates.checker.counted.network import Network
from sumformer.certificates.checker.counted.rounding import rounding
from sumformer.certificates.checker.grid.rounding import rounding as grid_rounding
from sumformer.certificates.checker.upward import over, times
from sumformer.nn import CellSumformer, MeshSumformer
from sumformer.theorems.construction import construct

GAUSSIAN, SHARP = "exp(-(x[0] - y[0])**2)", "1e250*exp(-4*(x[0] - y[0])**2)"


def remainder_lost() -> tuple[Spec, str]:
    """b · a, 1e-165 · 1e-165, before the error of K, 1e247."""
    kernel = MeshKernelSpec(SHARP, lambda z: 1e250 * np.exp(-4 * z**2), [0], [2], 4, [0.5])
    spec = Spec(
        f"1e85*mean((1e-165*x[0])*({SHARP})*(1e-165*y[0]))",
        [kernel],
        [[0]],
        [[[term(own="1e-165*x[0]")]]],
        channels=["1e-165*y[0]"],
        n="2",
    )
    return spec, "1e5*mean(x*exp(-4*norm2(x-y))*y)"


def underflow_lost() -> tuple[Spec, str]:
    """2⁻¹⁰²²/1e20 before it is divided by b ≥ 1e-250: N is 0."""
    b = "1e-250*exp(y[0])"
    kernel = MeshKernelSpec(GAUSSIAN, lambda z: np.exp(-(z**2)), [0], [60], 10, [0.5])
    above = term(own="1e-80*(x[0] + 1)", polynomial=[[[0], "1/2"], [[1], "1/2"]])
    spec = Spec(
        f"1e100*(sum((1e-80*(x[0] + 1))*({GAUSSIAN})*({b})*y[0])/sum(1e20*({GAUSSIAN})*({b})))",
        [kernel],
        [[0]],
        [[[above]], [[term(own="1e20")]]],
        channels=[b],
        n="2",
        assumptions=(*OF_A_SUMFORMER, TORCH_FUNCTIONS),
    )
    return spec, f"sum((x[0]+1)*({GAUSSIAN})*exp(y[0])*y[0])/sum(({GAUSSIAN})*exp(y[0]))"


@pytest.mark.parametrize("forged", [remainder_lost, underflow_lost])
def test_errors_that_underflow_are_in_the_bound(forged, tmp_path):
    spec, same = forged()
    folder = write(tmp_path, spec)
    tokens = torch.rand(50, 2, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    out = MeshSumformer.from_pretrained(folder).requires_grad_(False)(tokens)
    error = float((out - target(same, n=2, d=1)(tokens)).abs().max())
    assert error > 1
    assert not check(folder).bound < error


def test_slopes_that_underflow(tmp_path):
    """One function in two units, its kernel times 1e-250 and tokens times 1e100 or not: one bound."""

    def bound(kernel, scale, length):
        source, own = (f"1e-250*{kernel}", "1e250") if scale < 1 else (kernel, "1")
        spec = Spec(
            f"mean({own}*({source}))",
            [
                MeshKernelSpec(
                    source, lambda z: scale * np.exp(-((z / 12 / length) ** 2)), [0], [10**5], 16, [34 * length]
                )
            ],
            [[0]],
            [[[term(own=own)]]],
            box=f"0:{10**5}" if length == 1 else "0:1e105",
            n="2",
        )
        return check(write(tmp_path / own, spec)).bound

    wide, narrow = bound("exp(-((x-y)/12)**2)", 1.0, 1.0), bound("exp(-((x-y)/12*1e-100)**2)", 1e-250, 1e100)
    assert 1e-9 < wide <= 1.2 * narrow
    assert narrow <= 1.2 * wide < 1e-7


def test_products_and_quotients_are_no_smaller_than_exact_ones():
    assert times(1e-200, 1e-200, 1e300) >= 1e-100
    assert times(0.0, 1e300) == 0
    assert over(1e-300, 1e20, 1e-250) >= 1e-70
    assert over(0.0, 1e20) == 0
    assert np.isnan(times(0.0, np.inf))
    a, b = np.float64(0.1), np.float64(0.3)
    assert times(a, b) > a * b
    assert over(a, b) > a / b


@pytest.mark.parametrize("tail", ["", " + mean(y[1])/1000"])
def test_an_error_of_a_divisor_under_a_denormal_number(tail, tmp_path):
    """5e-324 over a number that is off by 17 %: their product is 0 in float64, and is divided by 1e-150."""
    source = "1e174*(x[0]/(1e-150*((4503599627370496 + x[1]) - 4503599627370496)))" + tail
    box = f"0:1/{2**1074},3:3.5"
    f = target(source, d=2, box=box)
    net = CellSumformer(source, 2, [1, 1], "float64")
    net.centres[1].data[:] = 3.25
    radii = np.array([5e-324, 0.25])
    with np.errstate(all="ignore"):
        bound = rounding(f, Network(f.expression, 2, (1, 1), "float64"), radii, 0.0)
        in_the_grid = grid_rounding(target(source, n=3, d=2, box=box), "float64")
    out = net.requires_grad_(False)(torch.tensor([[[5e-324, 3.499]]], dtype=torch.float64))
    exact = 10**174 * Fraction(5e-324) / (Fraction(1, 10**150) * Fraction(3.499))
    assert abs(float(out) - float(exact)) > 0.2
    assert bound > 0.2
    assert in_the_grid > 0.2


@pytest.mark.parametrize(("route", "n"), [("cells", "any"), ("grid", "3")])
def test_constants_of_weighted_means_are_exact(route, n, tmp_path):
    """1e200 · 1e-200 · 1e-200 · 1e200 is 1, and was 0 with a −1 in float64 among its factors."""
    source = "sum((exp(y)*y*1e200)*((1e200*cos(x))*1e-200)*(1e-200/(-cos(x))))/sum(exp(y))"
    construct(source, 0.3, n=n, box="-1:1", route=route).save(tmp_path)
    honest = check(tmp_path)
    assert honest.verified, honest.failures
    assert honest.bound > 0.05

    def less(data):
        term = data["terms"][0]
        data["total"] -= 0.99 * term["bound"]
        term["bound"] /= 100
        for name in ("lipschitz", "lipschitz_attained"):
            if name in data["constants"]:
                data["constants"][name] /= 100

    assert not check(Tampered(tmp_path, tmp_path / "copy").edit("certificate", less).folder).verified

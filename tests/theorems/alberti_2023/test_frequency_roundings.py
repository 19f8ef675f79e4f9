"""Φ ‖K‖₂ bounds what sums over nodes by frequencies lose, in the constructor's formula and in the checker's."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import torch

from sumformer.algebra.waves import waves
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.mesh.frequencies import parts, relative_rounding, spectrum
from sumformer.nn.convolution import convolve
from sumformer.nn.frequencies import cut
from sumformer.theorems.alberti_2023.frequency_roundings import frequency_error, norm, spectrum_size

U = 2.0**-53
over_shapes = pytest.mark.parametrize("shape", [(3,), (150,), (700,), (20, 31), (9, 8, 10)])


def wave(length):
    return torch.tensor(waves(length), dtype=torch.float64)


@over_shapes
def test_the_bound_holds(shape):
    """Against sums whose terms are exact: samples are whole numbers, and masses too, up to their last sum."""
    generator = torch.Generator().manual_seed(0)
    samples = torch.randint(-1000, 1001, [2 * n - 1 for n in shape], generator=generator).double()
    masses = torch.randint(-1000, 1001, (*shape, 1), generator=generator).double()
    exact = convolve(samples, masses)
    off = float((convolve(samples, masses, wave) - exact).abs().max())
    scale = norm(samples.numpy()) * float(masses.abs().sum())
    assert 0 < off <= frequency_error(shape, U) * scale
    assert frequency_error(shape, U) <= 1e-11


@over_shapes
def test_both_formulas_agree(shape):
    samples = np.random.default_rng(0).standard_normal([2 * n - 1 for n in shape])
    mine = relative_rounding(shape, samples, Arithmetic.named("float64")) * np.abs(samples).max()
    assert 0.9 * mine <= frequency_error(shape, U) * norm(samples) <= 1.1 * mine
    assert relative_rounding(shape, samples, Arithmetic.exact()) == 0
    assert spectrum(shape) == spectrum_size(shape) >= prod(shape)


@pytest.mark.parametrize("nodes", [*range(1, 40), 255, 256, 257, 512, 4096, 4153, 65_536, 65_537, 10**6, 2**21])
def test_both_cut_alike(nodes):
    assert tuple(parts(nodes)) == cut(nodes)

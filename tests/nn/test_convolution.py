"""Sums over the nodes of a mesh, by pairs and by frequencies, beside their definition; values and gradients."""

from __future__ import annotations

from itertools import product as cartesian
from math import prod

import pytest
import torch

from sumformer.algebra.waves import waves
from sumformer.nn import frequencies
from sumformer.nn.convolution import convolve, pair_sums
from sumformer.nn.frequencies import cut, lengths


def wave(length):
    return torch.tensor(waves(length), dtype=torch.float64)


def numbers(shape, series=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    samples = torch.randn([2 * n - 1 for n in shape], dtype=torch.float64, generator=generator)
    return samples, torch.randn(*shape, series, dtype=torch.float64, generator=generator)


over_ways = pytest.mark.parametrize("known", [None, wave], ids=["pairs", "frequencies"])


@over_ways
@pytest.mark.parametrize("shape", [(5,), (1,), (3, 4), (1, 7), (2, 3, 4)])
def test_a_convolution_is_its_sum(shape, known):
    samples, masses = numbers(shape)
    wanted = torch.zeros_like(masses)
    for i in cartesian(*map(range, shape)):
        for j in cartesian(*map(range, shape)):
            wanted[i] += samples[tuple(a - b + n - 1 for a, b, n in zip(i, j, shape, strict=True))] * masses[j]
    torch.testing.assert_close(convolve(samples, masses, known), wanted)


@pytest.mark.parametrize("shape", [(30,), (61,), (26, 5), (7, 13), (6, 5, 11)])
def test_long_axes_are_cut(shape, monkeypatch):
    monkeypatch.setattr(frequencies, "LONGEST", 3)
    samples, masses = numbers(shape)
    assert max(map(len, map(cut, shape))) >= 3
    torch.testing.assert_close(convolve(samples, masses, wave), convolve(samples, masses), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("nodes", [1, 2, 255, 256, 257, 511, 4153, 65_536, 65_537, 2**21])
def test_parts_of_an_axis_hold_its_nodes_and_few_more(nodes):
    parts = cut(nodes)
    assert nodes <= prod(parts) <= 1.2 * nodes
    assert max(parts) <= frequencies.LONGEST
    assert lengths([nodes]) == {2 * b - 1 for b in parts}


def test_many_series_go_some_at_a_time(monkeypatch):
    samples, masses = numbers((4, 5), series=7)
    whole = convolve(samples, masses, wave)
    monkeypatch.setattr(frequencies, "COLUMNS", 200)
    torch.testing.assert_close(convolve(samples, masses, wave), whole, atol=1e-13, rtol=1e-13)


@over_ways
def test_gradients(known):
    samples, masses = (v.requires_grad_() for v in numbers((3, 4)))
    assert torch.autograd.gradcheck(lambda s, m: convolve(s, m, known), (samples, masses))


@over_ways
def test_second_derivatives(known):
    """Beside those of the bare sums, which keep what they are made of."""
    found = []
    for f in (lambda s, m: convolve(s, m, known), pair_sums):
        samples, masses = (v.requires_grad_() for v in numbers((3, 4)))
        out = f(samples, masses).square().sum()
        first = torch.autograd.grad(out, (samples, masses), create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), (samples, masses)))
    for mine, wanted in zip(*found, strict=True):
        torch.testing.assert_close(mine, wanted)


@over_ways
def test_transforms_of_functions_see_the_sums(known):
    samples, masses = numbers((5,), series=6)
    found = torch.func.vmap(lambda m: convolve(samples, m[:, None], known)[:, 0], 1, 1)(masses)
    torch.testing.assert_close(found, convolve(samples, masses, known))


def test_both_ways_agree_to_their_roundings():
    """What is claimed of sums by frequencies, with a factor to spare, on many nodes."""
    samples, masses = numbers((700,), series=1)
    off = (convolve(samples, masses, wave) - convolve(samples, masses)).abs().max()
    assert 0 < off <= 1e-14 * samples.norm() * masses.abs().sum()

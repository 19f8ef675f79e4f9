from __future__ import annotations

import pytest
import torch

from sumformer.nn.patterns import BigBird, Random
from sumformer.nn.patterns.drawn import Drawn


@pytest.mark.parametrize("n", [1, 4, 7, 100])
@pytest.mark.parametrize("r", [1, 3, 8])
def test_one_from_each_stretch(n, r):
    places, exist = Drawn(r, seed=2).places(torch.arange(50).unsqueeze(-1), n)
    for s, exists in enumerate(exist.tolist()):
        first, end = s * n // r, (s + 1) * n // r
        assert exists == (end > first)
        assert not exists or ((places[:, s] >= first) & (places[:, s] < end)).all()
    assert sum(exist.tolist()) == min(n, r)


def test_draws_look_uniform_and_independent():
    n, r = 4096, 4
    places, _ = Drawn(r, seed=0).places(torch.arange(n).unsqueeze(-1), n)
    within = (places - torch.arange(r) * (n // r)).double() / (n // r)
    assert (within.mean(0) - 0.5).abs().max() < 0.03
    assert (torch.corrcoef(within.T) - torch.eye(r)).abs().max() < 0.08
    neighbours = torch.corrcoef(torch.stack([within[:-1, 0], within[1:, 0]]))
    assert neighbours[0, 1].abs() < 0.08
    seen = torch.bincount(places.flatten(), minlength=n)
    assert seen.max() <= 16  # of 4 on average


def test_the_seed_decides():
    assert torch.equal(Random(3, seed=1).matrix(60), Random(3, seed=1).matrix(60))
    same = (Random(3, seed=1).matrix(600) & Random(3, seed=2).matrix(600)).sum() - 600
    assert same < 40  # 9 expected
    assert not torch.equal(BigBird(1, 1, 3, seed=0).matrix(60), BigBird(1, 1, 3, seed=1).matrix(60))


def test_density():
    for density in (0.01, 0.1, 0.5, 1.0):
        assert Random.of_density(density, 400).density(400) == pytest.approx(density, abs=0.003)

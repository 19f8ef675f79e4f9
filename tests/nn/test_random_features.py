from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from sumformer.nn.random_features import iid_omega, orthogonal_omega, positive_features


def estimates(draw, k, q, y, draws):
    """a(q)·a(y) for each of `draws` draws of ω."""
    values = []
    for seed in range(draws):
        omega = draw(k, q.shape[0], 1000 * k + seed).double()
        values.append(positive_features(q, omega) @ positive_features(y, omega))
    return torch.stack(values)


@pytest.mark.parametrize("draw", [iid_omega, orthogonal_omega])
def test_the_mean_over_draws_is_exp_and_the_error_falls_like_the_root_of_k(draw):
    q, y = torch.tensor([0.5, -0.3, 0.4], dtype=torch.float64), torch.tensor([0.2, 0.6, 0.1], dtype=torch.float64)
    truth, draws, sizes = math.exp(q @ y), 400, (9, 36, 144)
    spread = []
    for k in sizes:
        values = estimates(draw, k, q, y, draws)
        spread.append(values.std().item())
        assert values.mean().item() == pytest.approx(truth, abs=4 * spread[-1] / math.sqrt(draws))
    for coarse, fine in pairwise(spread):
        assert math.log2(coarse / fine) == pytest.approx(1.0, abs=0.25)  # k grew fourfold: half the error


def test_orthogonal_draws_vary_less():
    q = torch.tensor([0.5, 0.0], dtype=torch.float64)
    assert estimates(orthogonal_omega, 2, q, q, 4000).var() < 0.95 * estimates(iid_omega, 2, q, q, 4000).var()


def test_orthogonal_within_blocks_and_of_gaussian_length():
    omega = orthogonal_omega(7, 3, seed=0).double()
    for block in (omega[:3], omega[3:6]):
        gram = block @ block.T
        assert torch.allclose(gram, gram.diagonal().diag(), atol=1e-6)
    lengths = orthogonal_omega(3000, 3, seed=1).double().square().sum(1)
    assert lengths.mean().item() == pytest.approx(3, rel=0.1)  # χ² with three degrees of freedom
    assert lengths.var().item() == pytest.approx(6, rel=0.2)


@pytest.mark.parametrize("draw", [iid_omega, orthogonal_omega])
def test_a_seed_is_a_draw_and_leaves_the_global_state_alone(draw):
    state = torch.random.get_rng_state()
    assert torch.equal(draw(5, 2, 3), draw(5, 2, 3))
    assert not torch.equal(draw(5, 2, 3), draw(5, 2, 4))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_features_follow_the_formula():
    omega, x = iid_omega(4, 2, 0).double(), torch.tensor([0.3, -0.7], dtype=torch.float64)
    wanted = [math.exp(w @ x) * math.exp(-(x @ x) / 2) / 2 for w in omega]
    assert positive_features(x, omega).tolist() == pytest.approx(wanted, rel=1e-14)
    assert positive_features(x.bfloat16(), omega.bfloat16()).dtype == torch.float32

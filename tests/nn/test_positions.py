from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import ShapeError
from sumformer.nn.positions import IndexPositions, LearnedPositions, SinusoidalPositions
from sumformer.testing import equivariance_error, padding_error

ALL = [IndexPositions(0.5), SinusoidalPositions(4), LearnedPositions(8, 4)]
IDS = [type(positions).__name__ for positions in ALL]


def test_index_moves_tokens_of_the_cube_into_disjoint_boxes():
    x = torch.rand(2, 5, 3)
    out = IndexPositions()(x)
    for r in range(5):
        assert torch.equal(out[:, r], x[:, r] + r)


@pytest.mark.parametrize("d", [1, 5, 6])
def test_sinusoidal_formula(d):
    out = SinusoidalPositions(d)(torch.zeros(1, 7, d, dtype=torch.float64))[0]
    for r in range(7):
        for j in range(d):
            angle = r / 10000 ** (2 * (j // 2) / d)
            assert out[r, j].item() == pytest.approx(math.cos(angle) if j % 2 else math.sin(angle), abs=1e-14)


def test_learned_is_a_table_with_an_end():
    positions = LearnedPositions(4, 3)
    x = torch.randn(2, 3, 3)
    assert torch.equal(positions(x), x + positions.table[:3])
    with pytest.raises(ShapeError, match="at most n_max = 4 tokens"):
        positions(torch.randn(2, 5, 3))


@pytest.mark.parametrize("positions", ALL, ids=IDS)
def test_rank_among_real_tokens_decides(positions):
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    positions = positions.double()
    assert not positions.equivariant
    assert equivariance_error(positions, x) > 1e-3
    error = padding_error(positions, x, paddings=(3, 4096), interleave=True)
    assert error.worst <= 1e-12
    assert error.leak == 0


def test_far_positions_are_exact_before_rounding_to_bfloat16():
    low = SinusoidalPositions(4)(torch.zeros(1, 3000, 4, dtype=torch.bfloat16))
    high = SinusoidalPositions(4)(torch.zeros(1, 3000, 4, dtype=torch.float64))
    assert (low - high).abs().max() <= 4e-3


def test_a_compiled_stream_counts_on():
    module, state, wanted = SinusoidalPositions(4), None, None
    compiled = torch.compile(module.stream, fullgraph=True, dynamic=True, backend="eager")
    for n in (5, 7, 3):
        x = torch.rand(2, n, 4)
        (got, state), (out, wanted) = compiled(x, state), module.stream(x, wanted)
        assert torch.equal(got, out)
        assert state == wanted

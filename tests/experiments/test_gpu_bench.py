from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sumformer.cli.gpu_bench import show
from sumformer.experiments.gpu_bench import draw
from sumformer.experiments.gpu_bench.contestants import FlashAttention, LinearAttention
from sumformer.experiments.gpu_bench.run import ratios
from sumformer.testing import relative_error

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "mixers_h200.json"


@pytest.fixture
def result():
    return json.loads(RESULT.read_text(encoding="utf-8"))


def test_the_stored_ratios_follow_from_the_stored_times(result):
    floors = {row["n"]: row for row in result["floors"]}
    assert ratios(result["rows"], floors) == result["ratios"]


def test_it_is_shown_and_drawn(result, tmp_path, capsys):
    show(result)
    assert "NVIDIA H200" in capsys.readouterr().out
    assert draw(result, tmp_path / "bench.png").stat().st_size > 10_000


def test_the_peers_are_what_they_say():
    torch.manual_seed(0)
    x = torch.randn(2, 9, 128, dtype=torch.float64)
    for peer in (FlashAttention(128).double(), LinearAttention(128).double()):
        q, k, v = peer.heads(x)
        if isinstance(peer, FlashAttention):
            weights = torch.softmax(q @ k.mT / 8, dim=-1)
        else:
            weights = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).mT
            weights = weights / weights.sum(-1, keepdim=True)
        assert relative_error(peer(x), peer.join(weights @ v)) <= 1e-6

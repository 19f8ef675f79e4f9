from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sumformer.cli import gpu_bench as cli
from sumformer.cli.gpu_bench import show
from sumformer.errors import InputError
from sumformer.experiments.gpu_bench import draw
from sumformer.experiments.gpu_bench.contestants import FlashAttention, LinearAttention
from sumformer.experiments.gpu_bench.run import best, ratios
from sumformer.testing import relative_error

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "mixers_h200.json"


@pytest.fixture
def result():
    return json.loads(RESULT.read_text(encoding="utf-8"))


def test_the_stored_ratios_follow_from_the_stored_times(result):
    floors = {row["n"]: row for row in result["floors"]}
    assert ratios(result["rows"], floors) == result["ratios"]
    assert best(result["rows"]) == result["best"]


def test_it_is_shown_and_drawn(result, tmp_path, capsys):
    show(result)
    assert "NVIDIA H200" in capsys.readouterr().out
    assert draw(result, tmp_path / "bench.png").stat().st_size > 10_000


def test_the_command_writes_both_files(result, tmp_path, monkeypatch, capsys):
    """All but the measurement itself."""
    asked = []

    def measured(config, progress):
        progress("…")
        asked.append(config)
        return result

    monkeypatch.setattr(cli, "run", measured)
    cli.gpu_bench(5000, tmp_path / "out", False, as_json=True)
    assert asked[0].lengths == (64, 256, 1024, 4096)
    assert asked[0].long == ()
    assert json.loads(capsys.readouterr().out)["best"] == result["best"]
    assert json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8")) == result
    assert (tmp_path / "out" / "bench.png").stat().st_size > 10_000
    with pytest.raises(InputError, match="--longest"):
        cli.gpu_bench(10, Path(), False, as_json=False)


def test_the_best_of_ours_is_the_fastest_that_was_measured():
    def row(name: str, forward: float, graph: float | None) -> dict:
        return {
            "name": name,
            "n": 4,
            "forward_ms": forward,
            "forward_graph_ms": graph,
            "step_ms": None,
            "step_graph_ms": None,
        }

    (found,) = best([row("SumMixer, a", 3, 2), row("SumMixer, b", 1, None), row("SDPA", 4, 3), row("linear", 6, 1.5)])
    assert found["forward"] == {"ours": "SumMixer, b", "ours_ms": 1, "peer": "linear", "peer_ms": 1.5, "ratio": 1.5}
    assert found["forward launched"]["peer"] == "SDPA"
    assert "step" not in found


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

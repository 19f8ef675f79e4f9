"""The bench in small: every contestant that is installed runs, ratios pair the right ones, a peak is that of a step."""

from __future__ import annotations

import sys

import pytest
import torch

from sumformer.experiments.bench import CONTESTANTS, Config, draw, run
from sumformer.experiments.bench.contestants import Shape
from sumformer.experiments.bench.memory import peaks
from sumformer.experiments.bench.picture import crossover
from sumformer.experiments.bench.run import ratios

SMALL = Shape(d=32, heads=4, rank=8, features=16, window=16)
NAMED = {c.name: c for c in CONTESTANTS}


def row(name, n, seconds, peak=None):
    c = NAMED[name]
    both = {"forward_seconds": seconds / 3, "step_seconds": seconds, "peak_bytes": peak}
    return {"name": name, "mechanism": c.mechanism, "ours": c.ours, "n": n} | both


def test_a_small_run(tmp_path):
    result = run(Config(batch=2, lengths=(32, 64), threads=torch.get_num_threads(), memory=False, shape=SMALL))
    ran = {r["name"] for r in result["rows"]}
    assert ran | result["missing"].keys() == NAMED.keys()
    assert {c.name for c in CONTESTANTS if c.ours} <= ran
    assert all(r["forward_seconds"] > 0 and r["step_seconds"] > 0 for r in result["rows"])
    assert draw(result, tmp_path / "bench.png").stat().st_size > 10_000


def test_every_contestant_maps_tokens_to_tokens():
    x = torch.randn(2, 48, SMALL.d)
    for contestant in CONTESTANTS:
        if contestant.ours or contestant.name in ("SDPA attention", "nn.TransformerEncoderLayer"):
            assert contestant.build(SMALL, 48)(x).shape == x.shape, contestant.name


def test_ratios_are_peer_over_ours_at_equal_n():
    rows = [row("SumMixer", 256, 2.0, 10), row("SDPA attention", 256, 6.0, 40), row("SDPA attention", 512, 9.0)]
    rows += [row("SparseAttention star", 256, 3.0), row("linformer", 256, 1.0)]
    found = {(r["ours"], r["peer"], r["n"]): (r["forward"], r["step"], r["memory"]) for r in ratios(rows)}
    assert found == {
        ("SumMixer", "SDPA attention", 256): (3.0, 3.0, 4.0),
        ("SparseAttention star", "SDPA attention", 256): (2.0, 2.0, None),
    }


def test_each_of_ours_meets_a_peer():
    for mine in (c for c in CONTESTANTS if c.ours):
        assert any(mine.meets(peer) for peer in CONTESTANTS), mine.name
        assert set(mine.against) <= NAMED.keys()


@pytest.mark.parametrize(("seconds", "start"), [((1, 1, 1), 256), ((9, 1, 1), 512), ((9, 1, 9), None)])
def test_the_crossover_is_where_ours_stays_ahead(seconds, start):
    rows = [row("SDPA attention", n, 5.0) for n in (256, 512, 1024)]
    rows += [row("SumMixer", n, s) for n, s in zip((256, 512, 1024), seconds, strict=True)]
    assert crossover(rows, "SumMixer", "SDPA attention") == start


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a step is read from /proc")
def test_the_peak_counts_what_a_step_allocates(monkeypatch):
    """One that holds 3 tensors of the input's size; the next n would pass the limit."""

    class Holds(torch.nn.Module):
        def forward(self, x):
            return (x * 2).exp().sin().cos()  # exp, sin and cos keep a tensor each

    contestant = type(CONTESTANTS[0])("holds", "sum", True, lambda s, n: Holds())
    size = 4 * 8192 * 512 * 4
    monkeypatch.setattr("sumformer.experiments.bench.memory.LIMIT", 13 * size)
    (n, peak), *more = peaks(contestant, 4, [8192, 16384], Shape(d=512))
    assert n == 8192
    assert 3 * size <= peak <= 8 * size
    assert bool(more) == (2 * peak <= 13 * size)

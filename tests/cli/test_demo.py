"""What the demo races against: the target itself, in plain torch."""

from __future__ import annotations

import torch

import sumformer
from sumformer.cli import demo
from sumformer.testing import TOLERANCE, relative_error


def test_the_baseline_is_the_target():
    f = sumformer.target(demo.BLUR, d=2)
    x = torch.rand(1, 50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    got = demo.pairwise_blur(x[0, :7], x[0])
    assert relative_error(got, f(x[:, :7], sources=x)[0]) <= TOLERANCE[torch.float64]


def test_the_race_times_the_baseline(monkeypatch):
    rows = []

    def counted(queries, x, exact=demo.pairwise_blur):
        rows.append(len(queries))
        return exact(queries, x)

    monkeypatch.setattr(demo, "pairwise_blur", counted)
    race = demo._race(sumformer.construct(demo.BLUR, 1e-2, d=2), 1000, queries=100, chunk=60)
    assert rows == [60, 60, 40]  # once to warm up
    assert race["difference"] <= 1e-2
    assert "matrix products in torch" in race["baseline"]

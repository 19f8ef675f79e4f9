"""The rule of a recommendation, on numbers made up for it; peak memory against what it must be."""

from __future__ import annotations

import torch
from torch import nn

from sumformer.experiments.comparison.costs import peak_bytes
from sumformer.experiments.comparison.recommendation import recommend, smallest_close


def row(name, validation, milliseconds, equivariant=True):
    made = {"name": name, "validation": validation, "milliseconds_per_set": milliseconds, "equivariant": equivariant}
    return made | {"latent": 4, "hidden": 8}


def test_the_smallest_latent_dimension_within_5_percent():
    assert smallest_close({4: 0.2, 16: 0.104, 64: 0.1}) == 16
    assert smallest_close({4: 0.2, 16: 0.106, 64: 0.1}) == 64


def test_a_clear_winner_wins_even_if_slow_or_tied_to_order():
    rows = [row("fast", [0.5, 0.52, 0.51], 1), row("slow", [0.1, 0.12, 0.11], 9, equivariant=False)]
    assert recommend(rows)["architecture"] == "slow"


def test_among_equals_equivariance_then_speed():
    rows = [
        row("best", [0.10, 0.14, 0.12], 5),
        row("fast", [0.11, 0.15, 0.13], 1),
        row("ordered", [0.11, 0.14, 0.12], 0.1, equivariant=False),
    ]
    result = recommend(rows)
    assert result["best"] == "best"
    assert result["architecture"] == "fast"
    assert set(result["tied"]) == {"best", "fast", "ordered"}


def test_peak_bytes_counts_what_is_alive_at_once():
    class Twice(nn.Module):
        def forward(self, x):
            return (x + 1) + 1  # two results of 4000 bytes alive during the second sum

    with torch.no_grad():
        assert peak_bytes(Twice(), torch.zeros(1000)) == 8000

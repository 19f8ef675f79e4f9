"""Axes that can be read."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from sumformer.experiments.report.drawing import decades
from sumformer.experiments.report.figure import new_figure


def labels(low: float, high: float) -> list[str]:
    """What stands along a logarithmic axis from low to high."""
    figure = new_figure(4.6, 3.4)
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    decades(axes.yaxis)
    figure.canvas.draw()
    return [t.get_text() for t in axes.get_yticklabels(which="both") if low <= t.get_position()[1] <= high]


@pytest.mark.parametrize(("low", "high"), [(0.21, 0.65), (0.41, 0.45), (3e-5, 1.5e-4), (2e3, 9e3), (0.9999, 1.0001)])
def test_less_than_two_decades_have_numbers(low, high):
    shown = [float(text) for text in labels(low, high) if text]
    assert len(set(shown)) >= 2
    assert all(0.99 * low <= value <= 1.01 * high for value in shown)


def test_whole_decades_are_powers_of_ten():
    assert [text for text in labels(0.5e-4, 2.0) if text] == ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]

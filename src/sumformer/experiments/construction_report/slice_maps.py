"""d ≥ 2: f, N and |f − N| over two coordinates of the own token; the colours of |f − N| end at the certified bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from sumformer.experiments.construction_report.slices import Slice, Slices
from sumformer.experiments.report.drawing import Picture, decades, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest, rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(slices: Slices) -> list[list[Picture]]:
    """For every context the three maps."""
    return [_maps(part, slices) for part in slices.slices]


def _maps(part: Slice, slices: Slices) -> list[Picture]:
    limits = (float(min(part.f.min(), part.N.min())), float(max(part.f.max(), part.N.max())))
    extent = f"from {nearest(limits[0])} to {nearest(limits[1])}"
    return [
        _values(part, slices, part.f, "f", limits, f"f with {part.context}: {extent}."),
        _values(part, slices, part.N, "N", limits, f"N with {part.context}: on the colours of f, {extent}."),
        _error(part, slices),
    ]


def _values(part: Slice, slices: Slices, z: Tensor, name: str, limits: tuple[float, float], alt: str) -> Picture:
    figure = new_figure(3.3, 2.9)
    axes = figure.subplots()
    image = axes.imshow(z.T.numpy(), cmap="viridis", vmin=limits[0], vmax=limits[1], **_placed(part))
    if slices.d == 2:
        _tokens(axes, part)
    _name(axes, name)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    return picture(figure, alt)


def _error(part: Slice, slices: Slices) -> Picture:
    from matplotlib.colors import LogNorm

    figure = new_figure(3.3, 2.9)
    axes = figure.subplots()
    low, top = part.floor, slices.top
    error = part.error.clamp(low, top).T.numpy()
    image = axes.imshow(error, cmap="magma", norm=LogNorm(low, top), **_placed(part))
    if slices.d == 2:
        _tokens(axes, part)
    _name(axes, "|f − N|")
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03, extend="min")
    decades(bar.ax.yaxis)
    bar.ax.tick_params(labelsize=8)
    bar.ax.set_title(f"≤ {rounded_up(slices.bound)}", fontsize=8)
    shown = f"at most {rounded_up(part.worst)} here, certified {rounded_up(slices.bound)}"
    alt = f"|f − N| with {part.context}, on a logarithmic scale that ends at the certified bound: {shown}."
    return picture(figure, alt, f"|f − N|: {shown}")


def _placed(part: Slice) -> dict[str, Any]:
    """Every grid point is the centre of its cell."""
    ends = []
    for axis in part.axes:
        low, high = float(axis[0]), float(axis[-1])
        half = (high - low) / (len(axis) - 1) / 2
        ends += [low - half, high + half]
    return {"origin": "lower", "extent": tuple(ends), "aspect": "auto", "interpolation": "nearest"}


def _tokens(axes: Axes, part: Slice) -> None:
    places = part.others.double().numpy()
    look: dict[str, Any] = {"s": 9, "c": "white", "edgecolors": "black", "linewidths": 0.5, "zorder": 3}
    axes.scatter(places[:, 0], places[:, 1], clip_on=False, **look)


def _name(axes: Axes, title: str) -> None:
    axes.set(title=title, xlabel="x[0]", ylabel="x[1]")
    axes.tick_params(labelsize=8)

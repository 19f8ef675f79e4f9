"""d = 1: f and N over the own token, and |f − N| under the certified bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sumformer.experiments.construction_report.slices import Slice, Slices
from sumformer.experiments.report.drawing import BLUE, GREY, ORANGE, RED, Picture, decades, grid, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest, rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(slices: Slices) -> list[Picture]:
    """One picture per context."""
    return [_draw(part, slices) for part in slices.slices]


def _draw(part: Slice, slices: Slices) -> Picture:
    figure = new_figure(4.6, 4.4)
    top, bottom = figure.subplots(2, 1, sharex=True)
    x = part.axes[0].double().numpy()
    top.plot(x, part.f.numpy(), color=BLUE, linewidth=4, alpha=0.45, label="f", solid_capstyle="butt")
    top.plot(x, part.N.numpy(), color=ORANGE, linewidth=1.3, linestyle="--", label="N")
    low, high = top.get_ylim()
    top.set_ylim(low - 0.06 * (high - low), high)
    if part.others.numel():
        at = part.others[:, 0].double().numpy()
        floor = [low - 0.03 * (high - low)] * len(at)
        top.plot(at, floor, "|", color=GREY, markersize=7, label="other tokens", clip_on=False)
    top.set_ylabel("f and N")
    top.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    grid(top)

    error = part.error.numpy()
    bottom.plot(x, error.clip(part.floor), color=RED, linewidth=1.2)
    bottom.axhline(slices.bound or part.floor, color="#333333", linewidth=1.4)
    bottom.axhline(slices.epsilon, color=GREY, linewidth=1, linestyle=":")
    bottom.set_yscale("log")
    high = max(slices.epsilon, slices.top)
    bottom.set_ylim(part.floor, high * (high / part.floor) ** 0.2)  # room for the label of ε
    close = slices.epsilon < slices.bound * (slices.epsilon / part.floor) ** 0.12
    _label(bottom, slices.bound or part.floor, f"certified {rounded_up(slices.bound)}", below=close)
    _label(bottom, slices.epsilon, f"ε = {nearest(slices.epsilon)}", below=False)
    bottom.set_ylabel("|f − N|")
    bottom.set_xlabel("own token x")
    decades(bottom.yaxis)
    grid(bottom)
    alt = (
        f"f and N over the own token with {part.context}: f from {nearest(float(part.f.min()))} to "
        f"{nearest(float(part.f.max()))}; |f − N| at most {rounded_up(part.worst)}, "
        f"certified {rounded_up(slices.bound)}."
    )
    caption = f"{part.context}; |f − N| ≤ {rounded_up(part.worst)} here"
    return picture(figure, alt, caption)


def _label(axes: Axes, value: float, text: str, *, below: bool) -> None:
    axes.annotate(
        text,
        (0.99, value),
        (0, -2 if below else 2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="top" if below else "bottom",
        fontsize=8,
        color="#333333",
    )

"""Figure → <figure><img …></figure>: matplotlib, loaded when the first picture is drawn, and one look for all."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from sumformer.experiments.report.figure import require_matplotlib
from sumformer.experiments.report.numbers import decade, nearest, rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#0072b2", "#d55e00", "#009e73", "#aa4499", "#cc3311", "#777777"
PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind a label that a line would cross
LOOK: Any = {  # matplotlib types its keys one by one
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "svg.fonttype": "path",
    "svg.hashsalt": "sumformer",
}
DOTS_PER_INCH = 144  # of the PNG, which a screen with fine pixels shows at half its size
PIXELS_PER_INCH = 96  # of a page


@dataclass(frozen=True)
class Picture:
    """A drawn figure, what it shows in words, and a caption."""

    data_uri: str
    width: int
    alt: str
    caption: str = ""

    def html(self) -> str:
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        image = f'<img src="{self.data_uri}" width="{self.width}" alt="{escape(self.alt)}">'
        return f'<figure style="max-width:{self.width + 24}px">{image}{caption}</figure>'


@contextmanager
def look() -> Iterator[None]:
    """Within, figures are drawn alike, whatever the user's own matplotlib settings are."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with matplotlib.rc_context(LOOK):
            yield


def picture(figure: Figure, alt: str, caption: str = "") -> Picture:
    """The figure as an image inside the page: SVG or PNG, whichever is smaller."""
    svg = _bytes(figure, "svg")
    figure.set_layout_engine("none")  # laid out once, the places hold for the second drawing
    forms = [("image/svg+xml", svg), ("image/png", _bytes(figure, "png"))]
    kind, data = min(forms, key=lambda form: len(form[1]))
    uri = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
    return Picture(uri, round(figure.get_figwidth() * PIXELS_PER_INCH), alt, caption)


def decades(axis: Axis) -> None:
    """A logarithmic axis with labels as 10⁻⁴ at whole decades, few enough to be read; with fewer than two, as 0.02."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = sorted(axis.get_view_interval())
    low = max(low, 1e-300)
    many = high / low > 1e8
    axis.set_minor_locator(NullLocator() if many else LogLocator(base=10, subs=tuple(range(2, 10)), numticks=10))
    axis.set_minor_formatter(NullFormatter())
    if floor(log10(high)) > ceil(log10(low)):
        axis.set_major_locator(LogLocator(base=10, numticks=6))
        axis.set_major_formatter(FuncFormatter(lambda v, _: decade(_exponent(float(v)))))
    else:
        axis.set_major_locator(_within_decades(low, high))
        axis.set_major_formatter(FuncFormatter(lambda v, _: nearest(float(v), 6)))


def _within_decades(low: float, high: float) -> Locator:
    """1, 2 and 5 of every decade, or equal steps where fewer than three of them are in view."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    steps = LogLocator(base=10, subs=(1, 2, 5), numticks=10)
    seen = [v for v in steps.tick_values(low, high) if low <= v <= high]
    return steps if len(seen) > 2 else MaxNLocator(4)


def grid(axes: Axes) -> None:
    """Faint lines behind the data."""
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def chosen(axes: Axes, place: float, value: float, what: str) -> None:
    """A ring around the point of a curve that was taken, with what it is and what is proved of it."""
    axes.plot([place], [value], "o", markersize=9, markerfacecolor="none", markeredgewidth=2, color=ORANGE)
    axes.annotate(
        f"chosen: {what},\nproved {rounded_up(value)}",
        (place, value),
        (10, 12),
        textcoords="offset points",
        fontsize=8.5,
        color="#a84900",
    )


def errors(axes: Axes, across: str, down: str) -> None:
    """What every picture of errors has: labels, a legend above, whole decades, a grid."""
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)
    decades(axes.yaxis)
    grid(axes)


def _exponent(value: float) -> int:
    return round(log10(value)) if value > 0 else 0


def _bytes(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    nothing = {"Date": None, "Creator": None, "Type": None, "Format": None} if form == "svg" else {"Software": None}
    figure.savefig(buffer, format=form, dpi=DOTS_PER_INCH, metadata=nothing, facecolor="white")
    return buffer.getvalue()

"""An empty matplotlib figure: loaded when the first one is drawn, without a window system or global state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sumformer.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def require_matplotlib() -> None:
    """Refuse before anything is computed if the pictures cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", "a picture", "plots") from None


def new_figure(width: float, height: float) -> Figure:
    """So many inches."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")

"""The matrix j ∈ A_k as a picture: rows are k, columns j."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from sumformer.errors import MissingDependencyError


def as_text(matrix: Tensor) -> str:
    """■ where k attends to j, · elsewhere."""
    return "\n".join(" ".join("■" if inside else "·" for inside in row) for row in matrix.tolist())


def as_picture(matrix: Tensor, title: str, ax: Any = None) -> Any:
    """Black squares on matplotlib axes, which are made when not given."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "the picture of a pattern", "plots") from None
    if ax is None:
        ax = Figure(figsize=(4, 4), layout="constrained").add_subplot()
    ax.imshow(matrix.numpy(), cmap="binary", vmin=0, vmax=1, interpolation="nearest")
    ax.set(title=title, xlabel="j, attended to", ylabel="k, attending")
    return ax

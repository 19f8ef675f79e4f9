"""One figure of one forward pass: stream and attention of a Transformer; φ of every token, or the cells, otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.experiments.explain.explanation import Explanation
from sumformer.experiments.report.figure import new_figure

NAMED = 60  # coordinates that still get a name beside their row
NAMED_OUTPUTS = 10  # components that are told apart by colour
LINEAR = 100.0  # larger numbers, as codes are, are shown by their logarithm


def draw(explanation: Explanation, path: str | Path) -> Path:
    """Write one figure (png, svg or pdf, by the name)."""
    rows = next((len(t.mT) for t in (explanation.stream, explanation.features) if t is not None), 30)
    height = max(3.0, min(12.0, 2.0 + 0.16 * rows))
    figure = new_figure(12, height)
    left, right = figure.subplots(1, 2, width_ratios=(3, 1))
    if explanation.stream is not None:
        _stream(explanation, left)
        _attention(explanation, right)
    else:
        _features(explanation, left) if explanation.features is not None else _cells(explanation, left)
        _outputs(explanation, right)
    figure.savefig(path)
    return Path(path)


def _stream(explanation: Explanation, axes: Any) -> None:
    assert explanation.stream is not None
    stream = explanation.stream.mT.numpy()  # (coordinates, blocks + 1)
    _heat(axes, stream, _first_names(explanation, stream.shape[0]))
    axes.set(xlabel="before block", ylabel="coordinate", title="residual stream, first token")
    axes.axvline(explanation.attention_at + 0.5, color="black", linewidth=0.8)


def _attention(explanation: Explanation, axes: Any) -> None:
    assert explanation.attention is not None
    rows, columns = explanation.attention.shape
    edges = (0.5, columns + 0.5, rows + 0.5, 0.5)
    matrix = axes.imshow(explanation.attention.numpy(), cmap="viridis", vmin=0, extent=edges)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="token j", ylabel="token i", title="attention matrix")
    axes.figure.colorbar(matrix, ax=axes, fraction=0.046)


def _features(explanation: Explanation, axes: Any) -> None:
    assert explanation.features is not None
    features = explanation.features.mT.numpy()  # (d', n)
    names = [name for name, _ in explanation.blocks[0].complete]
    _heat(axes, features, names, first=1)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="token", ylabel="coordinate of Σ", title="φ(x_j): every row is summed to one coordinate of Σ")


def _cells(explanation: Explanation, axes: Any) -> None:
    """Tokens and the centres that stand for them, in the first two coordinates."""
    assert explanation.centres is not None
    centres, X = explanation.centres, explanation.X
    network = explanation.construction.network
    grid = getattr(network, "network", network)  # inside `Positioned`
    plane = [(t[:, 0].tolist(), t[:, 1].tolist() if X.shape[1] > 1 else [0.0] * len(t)) for t in (X, centres)]
    for edge in grid.edges[0].tolist():
        axes.axvline(edge, color="lightgrey", linewidth=0.8)
    for edge in grid.edges[1].tolist() if X.shape[1] > 1 else ():
        axes.axhline(edge, color="lightgrey", linewidth=0.8)
    axes.plot(*plane[0], "o", label="tokens")
    axes.plot(*plane[1], "x", label="centres, as decoded for the other tokens")
    axes.set(xlabel="coordinate 0", title="cells")
    axes.legend(loc="best", fontsize="small")


def _outputs(explanation: Explanation, axes: Any) -> None:
    places = range(1, len(explanation.X) + 1)
    for w in range(explanation.wanted.shape[1]):
        axes.plot(places, explanation.wanted[:, w].tolist(), "o", color=f"C{w}", fillstyle="none")
        axes.plot(places, explanation.outputs[:, w].tolist(), "x", color=f"C{w}", label=f"component {w}")
    if 1 < explanation.wanted.shape[1] <= NAMED_OUTPUTS:
        axes.legend(loc="best", fontsize="small")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="token", title="outputs: f (○) and N (×)")


def _heat(axes: Any, matrix: Any, names: list[str], first: int = 0) -> None:
    """Rows by name, columns counted from `first`."""
    from matplotlib.colors import Normalize, SymLogNorm

    limit = max(1.0, float(abs(matrix).max()) if matrix.size else 1.0)
    scale = Normalize(-limit, limit) if limit <= LINEAR else SymLogNorm(1.0, vmin=-limit, vmax=limit)
    height, width = matrix.shape
    edges = (first - 0.5, first + width - 0.5, height - 0.5, -0.5)
    image = axes.imshow(matrix, aspect="auto", cmap="RdBu_r", norm=scale, interpolation="nearest", extent=edges)
    if matrix.shape[0] <= NAMED:
        axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.figure.colorbar(image, ax=axes)


def _first_names(explanation: Explanation, count: int) -> list[str]:
    """What a coordinate holds first; coordinate 0 of a compiled network is 1, of a look-up the token's first."""
    names = [""] * count
    layout = getattr(explanation.construction.network, "layout", None)
    if layout is None:
        names[0] = "1"
    else:
        for c in layout["x"]:
            names[c] = f"x[{c}]"
    for value in explanation.values:
        if value.coordinate is not None:
            names[value.coordinate] = names[value.coordinate] or value.name
    return names

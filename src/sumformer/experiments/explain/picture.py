"""Two pictures of one forward pass: the residual stream of one token, block by block, and the attention matrix."""

from __future__ import annotations

from pathlib import Path

from sumformer.errors import MissingDependencyError
from sumformer.experiments.explain.run import Explanation

NAMED = 60  # coordinates that still get a name beside their row


def draw(explanation: Explanation, path: str | Path) -> Path:
    """Write one figure (png, svg or pdf, by the name)."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError("matplotlib", "pictures", "plot") from None
    stream = explanation.stream.mT.numpy()  # (coordinates, blocks + 1)
    height = min(12.0, 2.0 + 0.16 * stream.shape[0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, height), width_ratios=(3, 1))
    limit = max(1.0, float(abs(stream).max()))
    image = left.imshow(stream, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    left.set(xlabel="before block", ylabel="coordinate", title="residual stream, first token")
    left.axvline(explanation.construction.network.attention_block + 0.5, color="black", linewidth=0.8)
    if stream.shape[0] <= NAMED:
        names = _first_names(explanation, stream.shape[0])
        left.set_yticks(range(len(names)), names, fontsize=6)
    figure.colorbar(image, ax=left)
    matrix = right.imshow(explanation.attention.numpy(), cmap="viridis", vmin=0)
    right.set(xlabel="token j", ylabel="token i", title="attention matrix")
    figure.colorbar(matrix, ax=right, fraction=0.046)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
    return Path(path)


def _first_names(explanation: Explanation, count: int) -> list[str]:
    """What a coordinate holds first."""
    names = ["1", *[""] * (count - 1)]
    for value in explanation.values:
        names[value.coordinate] = names[value.coordinate] or value.name
    return names

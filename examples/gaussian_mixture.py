"""Cluster assignment: two Gaussian clouds in each set, at places of their own; label 1 for tokens of the upper one.

Which cloud is the upper one can be told from the whole set alone: no token knows it by itself.

    python examples/gaussian_mixture.py  # under a minute; writes gaussian_mixture.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sumformer.interop.scikit_learn import SumformerClassifier


def mixtures(count: int, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sets of 10 to 30 points, and for each point whether it belongs to the upper cloud."""
    x, y = [], []
    for _ in range(count):
        low, n = rng.uniform(-3, 3, size=2), int(rng.integers(10, 31))
        centres = np.stack([low, low + np.array([rng.uniform(-1, 1), 2.5])])
        label = rng.permutation(np.arange(n) % 2)
        x.append(centres[label] + 0.5 * rng.normal(size=(n, 2)))
        y.append(label)
    return x, y


def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    x, y = mixtures(150 if quick else 1000, rng)
    new_x, new_y = mixtures(100, rng)
    model = SumformerClassifier(epochs=20 if quick else 120, random_state=0).fit(x, y)
    share = model.score(new_x, new_y)
    print(f"{100 * share:.1f} % of the points of new sets are assigned rightly")

    figure = Figure(figsize=(8, 4), layout="constrained")
    found = model.predict(new_x)
    for axes, points, truth, label in zip(figure.subplots(1, 2), new_x, new_y, found, strict=False):
        axes.scatter(points[:, 0], points[:, 1], c=label, cmap="coolwarm", s=25)
        wrong = points[label != truth]
        axes.scatter(wrong[:, 0], wrong[:, 1], s=90, facecolors="none", edgecolors="black", label="wrong")
        axes.legend()
    figure.suptitle("cluster assignment in new sets")
    figure.savefig(out / "gaussian_mixture.png", dpi=120)
    return float(share)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data and epochs: seconds, and worse")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for gaussian_mixture.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

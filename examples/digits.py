"""scikit-learn's digits as point sets: a token (column, row, ink) for each pixel with ink; which digit is it?

python examples/digits.py            # a minute or two; writes digits.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sumformer.interop.scikit_learn import SumformerClassifier


def point_set(image: np.ndarray) -> np.ndarray:
    """(8, 8) → (pixels with ink, 3)."""
    rows, columns = np.nonzero(image > 2)
    return np.stack([columns, rows, image[rows, columns]], axis=1).astype(float)


def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    sets = [point_set(image.reshape(8, 8)) for image in images][: 400 if quick else None]
    x, new_x, y, new_y = train_test_split(sets, labels[: len(sets)], test_size=0.2, random_state=0)
    model = SumformerClassifier("deep-sets", hidden=128, latent=64, epochs=60 if quick else 120, random_state=0)
    share = model.fit(x, y).score(new_x, new_y)
    print(f"{100 * share:.1f} % of {len(new_y)} new digits are read rightly")

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    found = model.predict(new_x)
    for axes, points, truth, label in zip(figure.subplots(2, 5).flat, new_x, new_y, found, strict=False):
        axes.scatter(points[:, 0], -points[:, 1], s=4 * points[:, 2], color="#0072b2")
        axes.set_title(f"{label}" + ("" if label == truth else f" (is {truth})"), fontsize=10)
        axes.set_axis_off()
        axes.set_aspect("equal")
    figure.savefig(out / "digits.png", dpi=120)
    return float(share)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data and epochs: seconds, and worse")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for digits.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

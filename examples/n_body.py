"""Forces of a softened N-body system, a_i = Σ_j m_j (r_j − r_i)/(‖r_j − r_i‖² + s²)^{3/2}, learned from samples.

python examples/n_body.py            # under a minute; writes n_body.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sumformer.learn import Settings, examine, fit, sets_from_arrays
from sumformer.learn.fitting import split_of

SOFTENING = 0.5


def forces(r: np.ndarray, m: np.ndarray) -> np.ndarray:
    """r (N, n, 2), m (N, n, 1) → accelerations (N, n, 2)."""
    apart = r[:, None] - r[:, :, None]
    return (m[:, None] * apart / ((apart**2).sum(-1, keepdims=True) + SOFTENING**2) ** 1.5).sum(2)


def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    r, m = rng.normal(size=(200 if quick else 2000, 8, 2)), rng.uniform(0.5, 1.5, size=(200 if quick else 2000, 8, 1))
    sets = sets_from_arrays(np.concatenate([r, m], -1), forces(r, m))
    fitted = fit(sets, Settings(latent=64, epochs=15 if quick else 120))
    held = split_of(sets, fitted.settings).test
    report = examine(fitted, sets.subset(held), held).report
    print(f"error {report['error']:.3f} of σ on {report['sets']} systems that were not trained on")

    one = sets.subset(held[:1])
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    place, truth, found = one.x[0], one.y[0], fitted.predict(one)[0]
    axes.scatter(place[:, 0], place[:, 1], s=40 * place[:, 2], color="black")
    for a, colour, name in ((truth, "#0072b2", "true"), (found, "#d55e00", "learned")):
        axes.quiver(place[:, 0], place[:, 1], a[:, 0], a[:, 1], color=colour, label=name, angles="xy", width=0.006)
    axes.legend()
    axes.set_title("accelerations of a system that was not trained on")
    figure.savefig(out / "n_body.png", dpi=120)
    return float(report["error"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data and epochs: seconds, and worse")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for n_body.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

"""Soft rank, f(X)_i = mean_j sigmoid((x_i − x_j)/s): constructed for a wide s, trained from there for a narrow one.

python examples/soft_rank.py         # under a minute; writes soft_rank.png
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from matplotlib.figure import Figure

import sumformer
from sumformer.learn import Reading, Sampling, Settings, fit, read


def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    wide = sumformer.construct("mean(sigmoid((x-y)/0.3))", epsilon=1e-3, d=1)
    sampling = Sampling(sets=100 if quick else 1000, tokens=20)
    sets = read("target:mean(sigmoid((x-y)/0.2))", Reading(sampling=sampling))
    with tempfile.TemporaryDirectory() as folder:
        wide.save(folder)
        fitted = fit(sets, Settings(start=folder, epochs=10 if quick else 60))
    first, best = fitted.history[0]["validation"], fitted.history[fitted.best_epoch]["validation"]
    print(f"loss {first:.2e} as constructed (s = 0.3), {best:.2e} after training (s = 0.2)")

    one = sets.subset(torch.arange(1))
    order = one.x[0, :, 0].argsort()
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(one.x[0, order, 0], one.y[0, order, 0], "o", color="#777777", label="soft rank, s = 0.2")
    axes.plot(one.x[0, order, 0], wide.network(one.x)[0, order, 0], color="#0072b2", label="constructed, s = 0.3")
    axes.plot(one.x[0, order, 0], fitted.predict(one)[0, order, 0], color="#d55e00", label="trained from there")
    axes.set_xlabel("token")
    axes.set_ylabel("rank")
    axes.legend()
    figure.savefig(out / "soft_rank.png", dpi=120)
    return float(best / first)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data and epochs: seconds, and worse")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for soft_rank.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

"""The density of points that lie in a file, read piece by piece: summaries of the pieces are merged, with a proof.

python examples/density_map.py        # about ten seconds; writes density_map.png

The map is mean(exp(−200‖x−y‖²)) at 160 × 160 places x over all points y of the file, certified to 1e-3 for summaries
that are merged up to 64 deep. No more than a piece is held at a time; pieces could as well be summarised by other
processes, each of which loads the saved construction and sends back its summary. A few places are summed exactly too.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

import sumformer

DENSITY = "mean(exp(-200*norm2(x-y)))"
PIECES, SIDE = 64, 160


def write_points(path: Path, n: int) -> np.ndarray:
    """Two arcs of points in the unit square, as float32 in a file."""
    rng = np.random.default_rng(0)
    angle, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    x, y = np.cos(angle), np.sin(angle)
    arcs = np.stack([np.where(upper, 0.4 + 0.25 * x, 0.6 - 0.25 * x), np.where(upper, 0.42 + 0.3 * y, 0.58 - 0.3 * y)])
    points = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, 2))
    points[:] = np.clip(arcs.T + 0.02 * rng.standard_normal((n, 2)), 0, 1)
    points.flush()
    return np.memmap(path, dtype=np.float32, mode="r", shape=(n, 2))


def exact(places: torch.Tensor, points: np.ndarray) -> torch.Tensor:
    pieces = (torch.tensor(piece).double() for piece in np.array_split(points, PIECES))
    return sum(torch.exp(-200 * torch.cdist(places, y).square()).sum(1) for y in pieces) / len(points)


def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    file = out / "points.f32"
    points = write_points(file, 50_000 if quick else 4_000_000)
    density = sumformer.construct(DENSITY, epsilon=1e-3, d=2, dtype="mixed", merges=PIECES)
    began = time.perf_counter()
    total = None
    for piece in np.array_split(points, PIECES):
        part = density.summarise(torch.tensor(piece)[None])
        total = part if total is None else total + part
    axis = torch.linspace(0, 1, SIDE)
    places = torch.cartesian_prod(axis, axis)
    found = density.apply(places[None], total)[0, :, 0]
    print(f"{len(points):,} points in {time.perf_counter() - began:.1f} s, {density.certificate.latent_dimension} sums")
    some = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))[:50]
    error = float((found[some] - exact(places[some].double(), points)).abs().max())
    print(f"largest error at {len(some)} places: {error:.1e}, certified {density.certificate.total:.1e}")
    del points
    file.unlink()
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(found.reshape(SIDE, SIDE).T.numpy(), origin="lower", extent=(0, 1, 0, 1), cmap="magma")
    axes.set_title(DENSITY)
    figure.colorbar(image)
    figure.savefig(out / "density_map.png", dpi=120)
    return error / density.certificate.total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points: seconds")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for density_map.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

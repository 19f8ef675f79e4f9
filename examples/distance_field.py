"""How far every place on the plane is from the nearest of many points, min_j ‖x − z_j‖, with a proved worst error: the
points are looked at once, and counted; the time for a place does not depend on how many there are.

(A k-d tree finds the exact nearest in about the same time. Here the formula may be any: a maximum, another metric, a
value that each point brings along.)

python examples/distance_field.py            # seconds; writes distance_field.png
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

import sumformer

NEAREST = "min(norm(x - y))"
CHECKED = 500  # places whose exact distance is computed


def spiral(count: int) -> Tensor:
    """Points near a spiral in the unit square: (count, 2)."""
    generator = torch.Generator().manual_seed(0)
    t = torch.rand(count, dtype=torch.float64, generator=generator)
    noise = 0.006 * torch.randn(count, 2, dtype=torch.float64, generator=generator)
    turn = 5 * torch.pi * t
    return (0.5 + 0.42 * t.unsqueeze(-1) * torch.stack([turn.cos(), turn.sin()], -1) + noise).clamp(0, 1)


def by_tree(places: Tensor, points: Tensor) -> float:
    """Seconds of the algorithm made for this question."""
    from scipy.spatial import cKDTree

    began = time.perf_counter()
    cKDTree(points.numpy()).query(places.numpy())
    return time.perf_counter() - began


@torch.no_grad()
def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    count, side, epsilon = (2_000, 60, 5e-2) if quick else (1_000_000, 400, 1e-2)
    field = sumformer.construct(NEAREST, epsilon, d=2)
    print(f"distances are off by {field.certificate.total:.2g} at most, for any number of points (proved)")

    points = spiral(count)
    axis = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    places = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), dim=-1).reshape(-1, 2)
    began = time.perf_counter()
    distances = field(places[None], sources=points[None])[0, :, 0]
    spent = time.perf_counter() - began
    some = torch.randperm(len(places), generator=torch.Generator().manual_seed(1))[:CHECKED]
    began = time.perf_counter()
    exact = torch.cat([torch.cdist(piece, points).amin(1) for piece in places[some].split(20)])
    by_pairs = (time.perf_counter() - began) * len(places) / len(some)
    worst = float((distances[some] - exact).abs().max())
    print(f"{len(places):,} places, {count:,} points: {spent:.2g} s; all pairs would take {by_pairs:.2g} s")
    if find_spec("scipy") is not None:
        print(f"a k-d tree takes {by_tree(places, points):.2g} s")
    print(f"largest error at {len(some)} places: {worst:.2g}")

    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.scatter(points[:20_000, 0], points[:20_000, 1], s=1, color="#0072b2", linewidths=0)
    left.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"{count:,} points")
    shown = right.imshow(distances.reshape(side, side).numpy(), origin="lower", extent=(0, 1, 0, 1), cmap="magma")
    right.set(title="distance to the nearest")
    figure.colorbar(shown, ax=right, shrink=0.8)
    figure.savefig(out / "distance_field.png", dpi=120)
    return worst / field.certificate.total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few points and a larger error: seconds")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for distance_field.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

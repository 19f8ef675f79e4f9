"""A cloud of bodies that falls together under gravity, a_i = mean_j (r_j − r_i)/(‖r_j − r_i‖² + s²)^{3/2}, with forces
from a network whose worst error is proved: time and memory grow with the number of bodies, not with its square.

python examples/gravity.py            # under a minute; writes gravity.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

import sumformer

SOFTENING = 0.09  # s²
FORCE = f"mean((y - x)/(norm2(y - x) + {SOFTENING})**1.5)"
STEP = 0.05
CHECKED = 64  # bodies whose exact acceleration is computed in every step


def exact(x: Tensor, y: Tensor) -> Tensor:
    """Accelerations of the bodies x (m, 3) towards all bodies y (n, 3)."""
    apart = y - x[:, None]
    return (apart / (apart.square().sum(-1, keepdim=True) + SOFTENING) ** 1.5).mean(1)


def reflected(r: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Walls: what left the unit cube comes back."""
    outside = (r < 0) | (r > 1)
    return torch.where(r < 0, -r, torch.where(r > 1, 2 - r, r)).clamp(0, 1), torch.where(outside, -v, v)


@torch.no_grad()
def main(quick: bool, out: Path) -> float:
    out.mkdir(parents=True, exist_ok=True)
    bodies, steps, epsilon = (1000, 3, 1e-1) if quick else (50_000, 60, 1e-2)
    forces = sumformer.construct(FORCE, epsilon, d=3)
    print(f"|a| is off by {forces.certificate.total:.2g} at most, for any number of bodies (proved)")

    generator = torch.Generator().manual_seed(0)
    r = (0.5 + 0.13 * torch.randn(bodies, 3, dtype=torch.float64, generator=generator)).clamp(0, 1)
    v = 0.6 * torch.linalg.cross(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).expand_as(r), r - 0.5)
    first, worst, spent, by_pairs = r, 0.0, 0.0, 0.0
    a = forces(r[None])[0]
    for _ in range(steps):
        v = v + STEP / 2 * a
        r, v = reflected(r + STEP * v, v)
        began = time.perf_counter()
        a = forces(r[None])[0]
        spent, began = spent + time.perf_counter() - began, time.perf_counter()
        worst = max(worst, float((a[:CHECKED] - exact(r[:CHECKED], r)).abs().max()))
        by_pairs += (time.perf_counter() - began) * bodies / CHECKED
        v = v + STEP / 2 * a
    print(f"{bodies:,} bodies: {spent / steps:.2g} s a step; all pairs would take {by_pairs / steps:.2g} s")
    print(f"largest error of {CHECKED} bodies, all steps: {worst:.2g}")

    figure = Figure(figsize=(8, 4), layout="constrained")
    for axes, places, when in zip(figure.subplots(1, 2), (first, r), ("at first", f"after {steps} steps"), strict=True):
        axes.scatter(places[:, 0], places[:, 1], s=40 / bodies**0.5, color="#0072b2", linewidths=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"{bodies:,} bodies {when}")
    figure.savefig(out / "gravity.png", dpi=120)
    return worst / forces.certificate.total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few bodies, three steps and a larger error: seconds")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for gravity.png, made if missing")
    arguments = parser.parse_args()
    main(arguments.quick, arguments.out)

"""Model-steps per second: an ensemble against a plain loop over models, in one run.

    python benchmarks/ensembles.py [--device cuda] [--members 512] [--out results.json]

The loop is what a user would write: `mlp_sumformer`, torch's Adam, one model after the other.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train
from sumformer.nn import mlp_sumformer

N, D, LATENT, BATCH, POINTS = 4, 4, 16, 256, 2048


def data(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.rand(points, N, D, generator=torch.Generator().manual_seed(0))
    return X, X * X.sum(1, keepdim=True)


def ensemble_rate(members: int, epochs: int, device: str, tf32: bool) -> float:
    """Model-steps per second after a first run that warms up."""
    X, Y = (part[None] for part in data(POINTS))
    found = 0.0
    for rounds in (1, epochs):
        models = SumformerEnsemble([Member(D, LATENT, D, seed=m) for m in range(members)]).to(device)
        recipe = Recipe(rounds, BATCH, validate_every=rounds, tf32=tf32)
        history = train(models, (X, Y), (X[:, :64], Y[:, :64]), recipe)
        if device == "cuda":
            torch.cuda.synchronize()
        found = history.steps * members / history.seconds
    return found


def loop_rate(steps: int, device: str) -> float:
    """Model-steps per second of one model in a plain loop: the next model only begins when it ends."""
    X, Y = (part.to(device) for part in data(POINTS))
    model = mlp_sumformer(D, LATENT, D).to(device)
    optimiser = torch.optim.Adam(model.parameters())
    start = 0.0
    for step in range(steps + 10):
        if step == 10:
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
        rows = torch.randint(POINTS, (BATCH,), device=device)
        optimiser.zero_grad(set_to_none=True)
        functional.mse_loss(model(X[rows]), Y[rows]).backward()
        optimiser.step()
    if device == "cuda":
        torch.cuda.synchronize()
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    loop = loop_rate(arguments.steps, arguments.device)
    rates: dict[str, float] = {}
    for tf32 in (False, True) if arguments.device == "cuda" else (False,):
        name = "ensemble, TF32" if tf32 else "ensemble"
        rates[name] = ensemble_rate(arguments.members, arguments.epochs, arguments.device, tf32)
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    result: dict[str, Any] = {
        "machine": where,
        "torch": torch.__version__,
        "members": arguments.members,
        "shape": {"n": N, "d": D, "d_latent": LATENT, "batch": BATCH, "mlp": "5 × 50"},
        "model_steps_per_second": {"loop": loop, **rates},
        "ratio": {name: rate / loop for name, rate in rates.items()},
    }
    print(json.dumps(result, indent=1))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

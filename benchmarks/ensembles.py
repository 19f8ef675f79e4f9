"""Model-steps per second: an ensemble against a plain loop over models, in one run.

    python benchmarks/ensembles.py [--device cuda] [--members 512] [--rounds 5] [--out results.json]

The loop is what a user would write: `mlp_sumformer`, torch's Adam, one model after the other.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train
from sumformer.nn import mlp_sumformer

N, D, LATENT, BATCH, POINTS = 4, 4, 16, 256, 2048
HIDDEN_LAYERS = 8  # from 50 to 50, in φ and ψ
PRODUCTS = "the 50-wide products alone, one thread"


def data(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.rand(points, N, D, generator=torch.Generator().manual_seed(0))
    return X, X * X.sum(1, keepdim=True)


def ensemble_rate(members: int, epochs: int, device: str, tf32: bool) -> float:
    """Model-steps per second of `train`, its first validation and the making of its graph included."""
    X, Y = (part[None] for part in data(POINTS))
    models = SumformerEnsemble([Member(D, LATENT, D, seed=m) for m in range(members)]).to(device)
    recipe = Recipe(epochs, BATCH, validate_every=epochs, tf32=tf32)
    history = train(models, (X, Y), (X[:, :64], Y[:, :64]), recipe)
    return history.steps * members / history.seconds


def loop_rate(steps: int, device: str) -> float:
    """Model-steps per second of one model in a plain loop: the next model only begins when it ends."""
    X, Y = (part.to(device) for part in data(POINTS))
    model = mlp_sumformer(D, LATENT, D).to(device)
    optimiser = torch.optim.Adam(model.parameters())
    start = 0.0
    for step in range(steps + 10):
        if step == 10:
            synchronise(device)
            start = time.perf_counter()
        rows = torch.randint(POINTS, (BATCH,), device=device)
        optimiser.zero_grad(set_to_none=True)
        functional.mse_loss(model(X[rows]), Y[rows]).backward()
        optimiser.step()
    synchronise(device)
    return steps / (time.perf_counter() - start)


def products_rate(rounds: int) -> float:
    """Model-steps per second and thread if a step were its 24 products of 50-wide matrices and nothing else."""
    h, W = torch.rand(BATCH * N, 50), torch.rand(50, 50)
    z, G = torch.empty_like(h), torch.empty_like(W)
    start = time.perf_counter()
    for _ in range(rounds * HIDDEN_LAYERS):
        torch.mm(h, W, out=z)
        torch.mm(z, W.T, out=h)
        torch.mm(h.T, z, out=G)
    return rounds / (time.perf_counter() - start)


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def best(rounds: int, rates: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Each in turn, `rounds` times, so that what else the machine does touches all alike; the best of each."""
    found = [{name: rate() for name, rate in rates.items()} for _ in range(rounds)]
    return {name: max(row[name] for row in found) for name in rates}


def one_thread_products() -> float:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return products_rate(20)
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = arguments.device
    rates: dict[str, Callable[[], float]] = {"loop": lambda: loop_rate(arguments.steps, device)}
    for tf32 in (False, True) if device == "cuda" else (False,):
        name = "ensemble, TF32" if tf32 else "ensemble"
        rates[name] = partial(ensemble_rate, arguments.members, arguments.epochs, device, tf32)
    if device == "cpu":
        rates[PRODUCTS] = one_thread_products
    found = best(arguments.rounds, rates)
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    result: dict[str, Any] = {
        "machine": where,
        "torch": torch.__version__,
        "members": arguments.members,
        "shape": {"n": N, "d": D, "d_latent": LATENT, "batch": BATCH, "mlp": "5 × 50"},
        "rounds": arguments.rounds,
        "model_steps_per_second": found,
        "ratio": {name: rate / found["loop"] for name, rate in found.items() if name.startswith("ensemble")},
    }
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""target:EXPRESSION → N sets of n tokens drawn uniformly from the box, with f(X) as targets for each token."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sumformer.errors import InputError
from sumformer.learn.sets import Sets, Task
from sumformer.targets import Target, target

PREFIX = "target:"


@dataclass(frozen=True)
class Sampling:
    """How many sets of how many tokens, from which box."""

    sets: int = 1000
    tokens: int = 10
    dim: int = 1
    box: str | None = None
    seed: int = 0


def sampled_target(expression: str, sampling: Sampling) -> Target:
    """The formula for exactly the number of tokens that is drawn."""
    if sampling.sets < 1 or sampling.tokens < 1:
        got = f"{sampling.sets} sets of {sampling.tokens} tokens"
        raise InputError(f"{PREFIX}EXPRESSION: expected at least one set (--sets) of one token (--tokens), got {got}")
    return target(expression, n=sampling.tokens, d=sampling.dim, box=sampling.box)


def sample(expression: str, sampling: Sampling) -> Sets:
    """Computed in float64 from the seed alone."""
    f = sampled_target(expression, sampling)
    generator = torch.Generator().manual_seed(sampling.seed)
    unit = torch.rand(sampling.sets, sampling.tokens, f.d, generator=generator, dtype=torch.float64)
    low, high = (torch.tensor([float(v) for v in ends], dtype=torch.float64) for ends in (f.box.lower, f.box.upper))
    x = low + unit * (high - low)
    y = torch.cat([f(part) for part in torch.split(x, _slab(sampling))])
    wrong = (~y.isfinite()).any(-1).nonzero()
    if len(wrong):
        i, j = wrong[0].tolist()
        raise InputError(f"{PREFIX}{expression}: not finite at token {j} of set {i}, {x[i, j].tolist()}")
    return Sets(x, torch.ones(x.shape[:2], dtype=torch.bool), y, Task(f.d, y.shape[-1], per_token=True))


def _slab(sampling: Sampling) -> int:
    """Sets evaluated at a time: a formula over pairs needs n² numbers for each."""
    return max(1, 2**22 // sampling.tokens**2)

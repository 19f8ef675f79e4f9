"""`python -m sumformer.experiments.bench.memory NAME N BATCH`: bytes that one step adds to the resident set."""

from __future__ import annotations

import resource
import sys

import torch

from sumformer.experiments.bench.contestants import CONTESTANTS, Shape


def main(name: str, n: int, batch: int) -> int:
    """The growth of the largest resident set, parameters and input not counted."""
    (contestant,) = (c for c in CONTESTANTS if c.name == name)
    shape = Shape()
    contestant.build(shape, 256)(torch.randn(1, 256, shape.d)).sum().backward()  # loads libraries and thread pools
    module = contestant.build(shape, n)
    x = torch.randn(batch, n, shape.d, requires_grad=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    module(x).sum().backward()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

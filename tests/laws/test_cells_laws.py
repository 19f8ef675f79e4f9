"""Route cells, whatever the target: no input errs by more than its certificate says, and a second program agrees."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
import torch
from tests.targets.moved_tokens import random_source

from sumformer.certificates.attack import attack, violation
from sumformer.certificates.checker import check
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import target
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct

BLOCK = 12
FAST_BLOCKS, SLOW_BLOCKS = 3, 40
BOXES = ("0:1", "-1:1", "0.25:1.5", "-0.3:0.2", "5:6")

pytestmark = pytest.mark.usefixtures("one_thread")


def at_edges(c: Construction, seed: int) -> float:
    """The largest error of tokens just below and on the edges of cells, at centres and at the ends of the box."""
    g, sides = torch.Generator().manual_seed(seed), []
    for k, low, high in zip(range(c.target.d), c.target.box.lower, c.target.box.upper, strict=True):
        edges = c.network.edges[k].detach().double()
        below = torch.nextafter(edges, torch.tensor(float("-inf"), dtype=torch.float64))
        inward = 0.0 if c.network.outside == torch.float64 else 1e-6 * float(high - low)  # as float32 within the box
        ends = torch.tensor([float(low) + inward, float(high) - inward], dtype=torch.float64)
        sides.append(torch.cat([edges, below, c.network.centres[k].detach().double(), ends]))
    worst = 0.0
    for n in (n for n in (2, 3, 30) if c.target.tokens.allows(n)):
        X = torch.stack([side[torch.randint(len(side), (64, n), generator=g)] for side in sides], -1)
        X[::2, 1:] = X[::2, -1:]
        X = X.to(c.network.outside)
        worst = max(worst, float((c.network(X).double() - c.target(X.double())).abs().max()))
    return worst


def outcome(seed: int, folder: Path) -> str:
    rng = Random(seed)
    f = target(random_source(rng, 3 + seed % 2), n=rng.choice(["any", "..6", "3"]), d=1, box=rng.choice(BOXES))
    try:
        c = construct(f, rng.choice([0.5, 0.1, 0.02]), route="cells", dtype=rng.choice(["float64", "mixed"]))
    except (RefusedError, DomainError) as refusal:
        return type(refusal).__name__
    claimed = c.certificate.total
    found = attack(c.target, c.network, effort="quick", seconds=1.5, seed=seed)
    if not found.worst <= claimed:
        violated, refined = violation(found, claimed)
        assert not violated, f"case {seed}: {f!r}: certified {claimed:.3e}, found {refined:.3e}\n{found.witness}"
    assert at_edges(c, seed) <= claimed * (1 + 1e-9) + 1e-12
    c.save(folder)
    verified = check(folder)
    assert verified.verified, f"case {seed}: {f!r}: {verified.failures}"
    return "built"


def check_block(block: int, folder: Path) -> None:
    outcomes = Counter(outcome(seed, folder / str(seed)) for seed in range(block * BLOCK, (block + 1) * BLOCK))
    assert outcomes["built"] >= BLOCK // 2, f"block {block}: {dict(outcomes)}"


@pytest.mark.parametrize("block", range(FAST_BLOCKS))
def test_no_input_errs_by_more_than_is_certified_and_verified(block: int, tmp_path: Path):
    check_block(block, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(FAST_BLOCKS, SLOW_BLOCKS))
def test_no_input_of_many_targets_errs_by_more(block: int, tmp_path: Path):
    check_block(block, tmp_path)

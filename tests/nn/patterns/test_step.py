"""Causal order of a step: whom a token attends to, as a list, and whom a later token may still attend to."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn import patterns

N = 41
PATTERNS = [
    patterns.Window(0),
    patterns.Window(3),
    patterns.Star(2),
    patterns.Strided(4),
    patterns.Fixed(5),
    patterns.Longformer(2, 3),
    patterns.BigBird(2, 2, 3),
    patterns.Random(4),
    patterns.Random(100),
    patterns.Longformer(50, 60),
]
STEPS = [(f"{pattern}, {part}", pattern.step(part)) for pattern in PATTERNS for part in (None, *range(pattern.p))]
STEPS.append(("rows alone", patterns.Step((patterns.Window(1).steps[0].relations[0],), rows=7)))
over_steps = pytest.mark.parametrize("step", [step for _, step in STEPS], ids=[name for name, _ in STEPS])


@pytest.mark.parametrize(("first", "n"), [(0, N), (0, 1), (6, 20), (17, 1), (30, 11)], ids=str)
@over_steps
def test_the_list_is_the_row_of_the_matrix(step, first, n):
    places, counts = step.earlier(first, n, torch.device("cpu"))
    assert places.shape == counts.shape
    wanted = step.matrix(N, is_causal=True)
    for row, (j, count) in enumerate(zip(places, counts, strict=True)):
        found = sorted(j[count].tolist())
        assert found == wanted[first + row].nonzero()[:, 0].tolist()


@pytest.mark.parametrize("t", [1, 6, 10, 23, 40])
@over_steps
def test_what_lasts_is_what_a_later_token_attends_to(step, t):
    lasting = step.lasting(torch.arange(t), t)
    seen = step.matrix(400, is_causal=True)[t:, :t].any(0)
    assert (lasting | ~seen).all()
    if not any(isinstance(relation, patterns.drawn.Drawn) for relation in step.relations):
        assert torch.equal(lasting, seen)

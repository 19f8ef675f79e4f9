"""Σ_k as a fixed tree: the same bits whatever the batch or the slab."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn.token_sum import in_groups, levels, sum_groups
from sumformer.testing import relative_error

GROUP = 8


def values(n, batch=3, width=2):
    return torch.randn(batch, n, width, generator=torch.Generator().manual_seed(n), dtype=torch.float32)


def leaves(x, group=GROUP):
    """One row per group of consecutive tokens."""
    return in_groups(x, group).sum(2)


def tree(x, group=GROUP, count=10):
    return sum_groups(leaves(x, group), group, count)


@pytest.mark.parametrize(
    ("n", "group", "wanted"),
    [(1, 8, 1), (8, 8, 1), (9, 8, 2), (64, 8, 2), (65, 8, 3), (2**30, 2, 30), (2**30, 64, 5), (2**30 + 1, 64, 6)],
)
def test_levels(n, group, wanted):
    assert levels(n, group) == wanted
    assert group**wanted >= n
    assert wanted == 1 or group ** (wanted - 1) < n


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 513])
def test_it_is_the_sum(n):
    x = values(n).double()
    assert relative_error(tree(x), x.sum(1)) <= 1e-13
    assert tree(x).shape == (3, 2)


@pytest.mark.parametrize("n", [1, 9, 65, 513])
def test_the_batch_does_not_matter(n):
    x = values(n)
    whole = tree(x)
    for row in range(3):
        assert torch.equal(tree(x[row : row + 1])[0], whole[row])


@pytest.mark.parametrize("slab", [1, 2, 5, 100])
@pytest.mark.parametrize("n", [1, 9, 65, 513])
def test_the_slab_does_not_matter(n, slab):
    x = values(n)
    pieces = [leaves(piece) for piece in x.split(slab * GROUP, dim=1)]
    assert torch.equal(sum_groups(torch.cat(pieces, 1), GROUP, 10), tree(x))


@pytest.mark.parametrize("n", [1, 9, 65])
def test_levels_past_the_root_and_zeros_behind_add_nothing(n):
    x = values(n)
    needed = levels(n, GROUP) - 1
    assert torch.equal(tree(x, count=needed), tree(x, count=20))
    behind = torch.cat([x, x.new_zeros(3, 3 * GROUP, 2)], 1)
    assert torch.equal(tree(behind), tree(x))


def test_compiled_and_eager_agree():
    """Compiled code runs every level; eager stops at the root."""
    torch._dynamo.reset()
    compiled = torch.compile(tree, fullgraph=True, dynamic=True, backend="eager")
    for n in (9, 65):
        assert torch.equal(compiled(values(n), count=3), tree(values(n), count=3))
    torch._dynamo.reset()


def test_in_groups():
    x = values(5)
    grouped = in_groups(x, 4)
    assert grouped.shape == (3, 2, 4, 2)
    assert torch.equal(grouped.flatten(1, 2)[:, :5], x)
    assert (grouped[:, 1, 1:] == 0).all()
    assert in_groups(x, 5).shape == (3, 1, 5, 2)

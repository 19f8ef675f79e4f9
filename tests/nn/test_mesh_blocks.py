"""Masses and values by blocks of a mesh, beside those stencil place by stencil place; values and gradients."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn import mesh_blocks, mesh_transfer
from sumformer.nn.mesh import Mesh
from sumformer.nn.mesh_blocks import Blocks
from sumformer.nn.mesh_transfer import Places


def places(batch, n, meshes, clustered=False):
    generator = torch.Generator().manual_seed(n)
    t = 2 * torch.rand(batch, n, len(meshes), dtype=torch.float64, generator=generator) - 1
    t = t * 1e-3 + t[:, :1] * 0.9 if clustered else t
    return Places.of(t, [Mesh(m, w) for m, w in meshes], range(len(meshes)))


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


SHAPES = [
    ((5, 4), (3, 4), (6, 4)),
    ((17, 6), (9, 2), (4, 8)),
    ((3, 4), (20, 4), (50, 12)),
    ((70, 10),),
    ((20, 4), (11, 4)),
    ((3, 4), (2, 4), (3, 4), (2, 4)),
]
over_shapes = pytest.mark.parametrize("meshes", SHAPES)


@over_shapes
@pytest.mark.parametrize(("batch", "n", "clustered"), [(1, 1, False), (3, 7, False), (2, 300, True), (1, 900, False)])
def test_blocks_are_the_stencil(meshes, batch, n, clustered):
    at, values = places(batch, n, meshes, clustered), numbers(batch, n, 2)
    q = numbers(batch, *[m + w - 1 for m, w in meshes], 2)
    blocks = Blocks.of(at.meshes, at.intervals, at.weights)
    torch.testing.assert_close(blocks.masses(values), at._masses_by_token(values), atol=1e-12, rtol=1e-12)
    at_once = (q.flatten(0, len(meshes))[index] * weights.unsqueeze(-1) for index, weights in [everywhere(at, batch)])
    torch.testing.assert_close(blocks.values(q, n), next(at_once).sum(1).unflatten(0, (batch, n)))


def everywhere(at, batch):
    return at._everywhere([mesh.nodes for mesh in at.meshes], torch.arange(batch).unsqueeze(1))


def test_pieces_make_no_difference(monkeypatch):
    at, values = places(1, 700, SHAPES[1]), numbers(1, 700, 3)
    q = numbers(1, *[m + w - 1 for m, w in SHAPES[1]], 3)

    def both():
        blocks = Blocks.of(at.meshes, at.intervals, at.weights)
        return blocks.masses(values), blocks.values(q, 700)

    whole = both()
    monkeypatch.setattr(mesh_blocks, "HELD", 1)
    monkeypatch.setattr(mesh_blocks, "RUN", 5)
    for found, wanted in zip(both(), whole, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-12, rtol=1e-12)


@over_shapes
def test_runs_of_a_count_that_does_not_depend_on_the_tokens(meshes, monkeypatch):
    """As on a GPU and under transforms."""
    at, values = places(2, 300, meshes, clustered=True), numbers(2, 300, 2)
    q = numbers(2, *[m + w - 1 for m, w in meshes], 2)

    def both():
        blocks = Blocks.of(at.meshes, at.intervals, at.weights)
        return len(blocks.runs), blocks.masses(values), blocks.values(q, 300)

    count, *wanted = both()
    monkeypatch.setattr(mesh_blocks, "transformed", lambda: True)
    longer, *found = both()
    assert longer >= count
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


def test_batched_by_a_transform():
    meshes, t = [Mesh(5, 4), Mesh(9, 4), Mesh(20, 4)], 2 * torch.rand(3, 40, 3, dtype=torch.float64) - 1
    values, q = numbers(3, 40, 2), numbers(8, 12, 23, 2)

    def both(t, values):
        at = Places.of(t[None], meshes, range(3))
        blocks = Blocks.of(at.meshes, at.intervals, at.weights)
        return blocks.masses(values[None])[0], blocks.values(q[None], 40)[0]

    for found, *wanted in zip(torch.vmap(both)(t, values), *map(both, t, values), strict=True):
        torch.testing.assert_close(found, torch.stack(wanted), atol=1e-12, rtol=1e-12)


def test_gradients():
    meshes = SHAPES[0]
    t = (2 * torch.rand(1, 5, 3, dtype=torch.float64) - 1).requires_grad_()
    values, q = numbers(1, 5, 2).requires_grad_(), numbers(1, 8, 6, 9, 2).requires_grad_()

    def both(t, values, q):
        at = Places.of(t, [Mesh(m, w) for m, w in meshes], range(3))
        blocks = Blocks.of(at.meshes, at.intervals, at.weights)
        return blocks.masses(values), blocks.values(q, 5)

    assert torch.autograd.gradcheck(both, (t, values, q))


def test_stencils_with_many_places_go_by_blocks(monkeypatch):
    at, values = places(1, 50, ((9, 6), (9, 6), (9, 6))), numbers(1, 50, 1)
    wanted = at.masses(values)
    monkeypatch.setattr(mesh_transfer, "MANY", 10**9)
    other = at.masses(values)
    assert not torch.equal(wanted, other)
    torch.testing.assert_close(wanted, other, atol=1e-12, rtol=1e-12)

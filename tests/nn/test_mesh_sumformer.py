"""A Sumformer on a mesh, beside its definition node by node; how it reads masks, packs, weights and long sequences."""

from __future__ import annotations

from itertools import product as cartesian

import pytest
import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn import MeshSumformer
from sumformer.nn.mesh import Mesh
from sumformer.nn.mesh_transfer import Cells, Places

KERNEL = "1/(1 + (x[0] - y[0])**2 + 2*(x[1] - y[1])**2)"
LINE = "exp(-(x[2] - y[2])**2)"
INTERVALS, WIDTH = (3, 5), 4


def arguments(reduction: str = "mean", sums: str = "pairs") -> dict:
    node = f"{reduction}(y[0]*{KERNEL}*{LINE})"
    term = {"own": "1", "channel": 0, "polynomial": [[[0, 0, 0], "1/2"], [[1, 0, 0], "1/2"]], "product": 0}
    return {
        "expression": f"x[1] + {node}",
        "d": 3,
        "centre": ["1/2", "1/2", "0"],
        "radius": ["1/2", "1/2", "1"],
        "arithmetic": "float64",
        "group": 16,
        "channels": [{"factor": "1"}],
        "kernels": [
            {"expression": KERNEL, "coordinates": [0, 1], "intervals": list(INTERVALS), "width": WIDTH, "sums": sums},
            {"expression": LINE, "coordinates": [2], "intervals": [6], "width": 6, "sums": "pairs"},
        ],
        "products": [{"kernels": [0, 1]}],
        "reductions": [{"reduction": node, "components": [[term]]}],
    }


def network(reduction: str = "mean", sums: str = "pairs") -> MeshSumformer:
    """Samples at random: what is tested is where they go."""
    net = MeshSumformer(**arguments(reduction, sums))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for samples in net.samples:
            samples.copy_(torch.rand(samples.shape, generator=generator, dtype=torch.float64))
    return net.requires_grad_(False)


def tokens(batch: int, n: int, seed: int = 0) -> Tensor:
    x = torch.rand(batch, n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.cat([x[..., :2], 2 * x[..., 2:] - 1], dim=-1)


def weights_on_nodes(t: Tensor, intervals: int, width: int) -> Tensor:
    """ℓ on all nodes, from Lagrange's formula: t (n,) ∈ [−1, 1] → (n, nodes)."""
    out = torch.zeros(len(t), intervals + width - 1, dtype=torch.float64)
    for k, value in enumerate(t.tolist()):
        s = (value + 1) * intervals / 2
        i = min(int(s), intervals - 1)
        for a in range(width):
            weight = 1.0
            for b in range(width):
                if b != a:
                    weight *= (s - i + width // 2 - 1 - b) / (a - b)
            out[k, i + a] = weight
    return out


def by_definition(net: MeshSumformer, X: Tensor, Z: Tensor, reduction: str = "mean") -> Tensor:
    """Σ_{i,j} Π ℓ_i(x) Π ℓ_j(z) K(i − j), node by node, for one sequence."""

    def on_nodes(points: Tensor) -> list[Tensor]:
        t = torch.stack([2 * points[:, 0] - 1, 2 * points[:, 1] - 1, points[:, 2]], dim=-1)
        return [weights_on_nodes(t[:, c], m, w) for c, (m, w) in enumerate(((3, 4), (5, 4), (6, 6)))]

    x, z = on_nodes(X), on_nodes(Z)
    plane, line = net.samples
    counts = [w.shape[1] for w in x]
    value = torch.zeros(len(X), len(Z), dtype=torch.float64)
    first = [[torch.outer(x[c][:, i], z[c][:, j]) for i, j in cartesian(range(counts[c]), repeat=2)] for c in range(3)]
    pairs = [list(cartesian(range(counts[c]), repeat=2)) for c in range(3)]
    flat = torch.zeros_like(value)
    for (i0, j0), a in zip(pairs[0], first[0], strict=True):
        for (i1, j1), b in zip(pairs[1], first[1], strict=True):
            flat += a * b * plane[i0 - j0 + counts[0] - 1, i1 - j1 + counts[1] - 1]
    deep = sum(line[i - j + counts[2] - 1] * c for (i, j), c in zip(pairs[2], first[2], strict=True))
    value = flat * deep * Z[:, 0]
    if reduction == "mean":
        return X[:, 1:2] + value.mean(1, keepdim=True)
    return X[:, 1:2] + (value.sum(1) - value.diagonal()).unsqueeze(1)


@pytest.mark.parametrize("sums", ["pairs", "frequencies"])
def test_it_is_its_definition(sums):
    net, X = network(sums=sums), tokens(2, 7)
    for b in range(2):
        torch.testing.assert_close(net(X)[b], by_definition(net, X[b], X[b]), atol=1e-13, rtol=1e-12)
    assert net.latent_dimension == 6 * 8 * 11


def test_the_own_token_is_left_out():
    net, X = network("sum_others"), tokens(1, 5)
    torch.testing.assert_close(net(X)[0], by_definition(net, X[0], X[0], "sum_others"), atol=1e-12, rtol=1e-12)


def test_queries_and_weights():
    net, X, Z = network(), tokens(1, 4), tokens(1, 6, seed=5)
    w = torch.tensor([[1.0, 2.0, 0.0, 3.0, 1.0, 1.0]], dtype=torch.float64)
    repeated = torch.repeat_interleave(Z[0], w[0].long(), dim=0)
    found = net.apply(X, net.summarise(Z, weights=w))
    torch.testing.assert_close(found[0], by_definition(net, X[0], repeated), atol=1e-13, rtol=1e-12)


def test_one_sequence_of_queries_asks_several_summaries():
    net, X, Z = network(), tokens(1, 4), tokens(3, 6, seed=5)
    found = net.apply(X, net.summarise(Z))
    for b in range(3):
        torch.testing.assert_close(found[b : b + 1], net.apply(X, net.summarise(Z[b : b + 1])))


@pytest.mark.parametrize("sums", ["pairs", "frequencies"])
def test_no_sequences(sums):
    assert network(sums=sums)(tokens(2, 5)[:0]).shape == (0, 5, 1)


def test_groups_tokens_and_intervals_agree():
    """71 tokens in groups of 16, and so many that intervals are added first: one sum."""
    net, X = network(), tokens(1, 371)
    whole = by_definition(net, X[0, :9], X[0])
    torch.testing.assert_close(net(X)[0, :9], whole, atol=1e-12, rtol=1e-11)
    t, mesh = 2 * X[..., :2] - 1, [Mesh(m, WIDTH) for m in INTERVALS]
    places, values = Places.of(t, mesh, (0, 1)), X[..., 1:]
    belongs = torch.arange(371).unsqueeze(0) % 3
    parts = places.added(values, belongs, 3)
    ways = [places._masses_by_token(values), places._masses_by_interval(values), parts.sum(0, keepdim=True)]
    for other in ways[1:]:
        torch.testing.assert_close(other, ways[0], atol=1e-12, rtol=1e-12)
    second = Places.of(t[:, 1::3], mesh, (0, 1)).masses(values[:, 1::3])
    torch.testing.assert_close(parts[1:2], second, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 3), (1000, 7), (3000, 5000), (2000, 1)])
def test_rows_sorted_by_cell_are_added(n, size):
    """As on a GPU: in runs, and the runs of a cell; no cell has many, however many are empty."""
    generator = torch.Generator().manual_seed(n)
    index = torch.randint(0, size, (n,), generator=generator) if n != 2000 else torch.zeros(n, dtype=torch.long)
    rows = torch.randn(n, 3, dtype=torch.float64, generator=generator)
    cells = Cells.sorted(index, size)
    torch.testing.assert_close(cells.sums(rows), Cells(index, size).sums(rows), atol=1e-11, rtol=1e-11)
    assert int(cells.index.diff().max()) <= n // 256 + 1


@pytest.mark.parametrize("t", [-1.0, 1.0, 0.0, 1 / 3, 2 / 3 - 1e-16])
def test_weights_at_ends_and_nodes_add_up_to_one(t):
    interval, weights = Mesh(6, 8).place(torch.tensor([t], dtype=torch.float64))
    assert 0 <= int(interval) <= 5
    assert abs(float(weights.sum()) - 1) <= 1e-14


def test_what_is_no_number_spoils_its_own_sequence_alone():
    net, X = network(), tokens(2, 40)
    spoilt = X.clone()
    spoilt[0, 3, 0] = float("nan")
    out = net(spoilt)
    assert bool(out[0].isnan().all())
    torch.testing.assert_close(out[1], net(X)[1])


def test_padding_is_not_seen():
    net, X = network(), tokens(2, 40)
    keep = torch.ones(2, 40, dtype=torch.bool)
    keep[1, 3:30] = False
    spoilt = torch.where(keep.unsqueeze(-1), X, torch.tensor(float("nan"), dtype=torch.float64)).requires_grad_()
    out = net(spoilt, attention_mask=keep)
    torch.testing.assert_close(out[1, keep[1]], net(X[1:, keep[1]])[0], atol=1e-13, rtol=1e-12)
    assert not bool(out[~keep].any())
    (gradient,) = torch.autograd.grad(out.sum(), spoilt)
    assert not bool(gradient[~keep].any())
    assert bool(gradient[keep].isfinite().all())


def test_packs_and_causal_order():
    net, X = network(), tokens(1, 12)
    starts = torch.tensor([0, 5, 12], dtype=torch.int32)
    packed = net(X, cu_seqlens=starts, max_seqlen=7)
    torch.testing.assert_close(packed[:, 5:], net(X[:, 5:]), atol=1e-13, rtol=1e-12)
    causal = net(X, is_causal=True)
    torch.testing.assert_close(causal[:, 6], net(X[:, :7])[:, 6], atol=1e-13, rtol=1e-12)


def test_it_is_saved_and_read(tmp_path):
    net, X = network(), tokens(1, 6)
    net.save_pretrained(tmp_path)
    assert torch.equal(MeshSumformer.from_pretrained(tmp_path)(X), net(X))


@pytest.mark.parametrize("sums", ["pairs", "frequencies"])
def test_gradients(sums):
    net, X = network(sums=sums), tokens(1, 4).requires_grad_()
    assert torch.autograd.gradcheck(net, (X,))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("kernels", {"width": 5}),
        ("kernels", {"intervals": [3]}),
        ("kernels", {"intervals": [0, 5]}),
        ("kernels", {"coordinates": [0, 0]}),
        ("kernels", {"coordinates": [0, 3]}),
        ("kernels", {"coordinates": [0, 2]}),
        ("kernels", {"sums": "guesses"}),
        ("products", {"kernels": [0, 2]}),
    ],
)
def test_what_is_no_mesh_is_refused(part, change):
    given = arguments()
    given[part][0] = {**given[part][0], **change}
    with pytest.raises(InputError):
        MeshSumformer(**given)


@pytest.mark.parametrize("change", [{"arithmetic": "float32"}, {"group": 1}])
def test_arithmetic_and_groups_are_checked(change):
    with pytest.raises(InputError):
        MeshSumformer(**{**arguments(), **change})

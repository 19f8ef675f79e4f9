"""Reductions over cells, beside the same over a list of centres."""

import pytest
import torch

from sumformer.errors import InputError, NotSupportedError, ShapeError
from sumformer.interop.onnx import export_onnx
from sumformer.nn import CellSumformer, cell_reductions, cell_sumformer
from sumformer.targets import Environment, evaluate, parse
from sumformer.targets.domain import Box
from sumformer.targets.torch_evaluation import TorchOperations, evaluate_tensor
from sumformer.theorems.alberti_2023.grid_tables import fill_tables

SOURCES = (
    "max(norm(x-y))",
    "x + sum_others(y)**2",
    "mean(norm(y-mean(y)))",
    "min(cat(x,y)) - x[0]",
    "mean(exp(-norm2(x-y)/(0.1+mean_others(norm(x-y))))*y)/mean(exp(-norm2(x-y)/(0.1+mean_others(norm(x-y)))))",
    "max(y[0])*min(y[1]) - x",
    "mean(max(x[0], y[1]))*sum(y[0])",
    "max(y[0] - max(y[1]*x[0]))",
    "x",
)
over_sources = pytest.mark.parametrize("source", SOURCES)


def network(source, cells=(3, 4), arithmetic="float64"):
    net = CellSumformer(source, len(cells), list(cells), arithmetic)
    fill_tables(net, Box.unit(len(cells)))
    return net.requires_grad_(False)


def naive(source, X, cells):
    """The target with every reduction at the centres of the tokens' cells, by its own evaluation."""
    count = torch.tensor(cells, dtype=X.dtype)
    centres = (torch.minimum((X * count).floor(), count - 1) + 0.5) / count
    env = Environment(x=X, reduce=lambda part: evaluate_tensor(part, centres))
    return evaluate(parse(source, X.shape[2]), TorchOperations(X.dtype, X.device), env)


def tokens(batch, n, seed=0, dtype=torch.float64):
    return torch.rand(batch, n, 2, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@over_sources
@pytest.mark.parametrize("n", [2, 5, 60])
def test_it_is_the_target_at_centres(source, n):
    X = tokens(7, n)
    torch.testing.assert_close(network(source)(X), naive(source, X, (3, 4)).expand(7, n, -1), rtol=1e-13, atol=1e-13)


@over_sources
def test_pieces_and_traced_graphs_give_the_same(source, monkeypatch):
    X, net = tokens(5, 30), network(source)
    wanted = net(X)
    monkeypatch.setattr(cell_reductions, "PAIRS", 8)
    monkeypatch.setattr(cell_sumformer, "BATCH_ELEMENTS", 24)
    torch.testing.assert_close(net(X), wanted, rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(torch.func.vmap(lambda x: net(x[None])[0])(X), wanted, rtol=1e-13, atol=1e-13)


@over_sources
def test_it_is_equivariant_and_padding_does_not_matter(source):
    X, net = tokens(6, 4, 2), network(source)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(net(X[:, order]), net(X)[:, order], rtol=1e-13, atol=1e-13)
    mask = torch.tensor([[1, 1, 0, 1]] * 3 + [[0, 1, 1, 0]] * 2 + [[0] * 4])
    X[mask == 0] = torch.nan
    out = net(X, attention_mask=mask)
    assert torch.equal(out[mask == 0], torch.zeros_like(out[mask == 0]))
    torch.testing.assert_close(out[0, mask[0] == 1], net(X[:1, mask[0] == 1])[0], rtol=1e-14, atol=1e-14)


@over_sources
def test_packs(source):
    X, net = tokens(1, 40, 3), network(source)
    packed = net(X, cu_seqlens=torch.tensor([0, 2, 9, 40], dtype=torch.int32), max_seqlen=31)
    parts = [net(X[:, a:b]) for a, b in ((0, 2), (2, 9), (9, 40))]
    torch.testing.assert_close(packed, torch.cat(parts, dim=1), rtol=1e-13, atol=1e-13)


def test_summaries_add_up_and_count():
    X, net = tokens(2, 30, 4), network("max(norm(x-y)) + mean(y[0])")
    whole = net.summarise(X)
    assert whole.total[:, :12].sum(1).tolist() == whole.total[:, 12:].sum(1).tolist() == [30, 30]
    assert torch.equal((net.summarise(X[:, :11]) + net.summarise(X[:, 11:])).total, whole.total)
    less = whole - net.summarise(X[:, 20:])
    torch.testing.assert_close(net.apply(X, less), net.apply(X, net.summarise(X[:, :20])), rtol=0, atol=0)
    weights = torch.randint(0, 3, (2, 30), generator=torch.Generator().manual_seed(5))
    repeated = [X[b].repeat_interleave(weights[b], 0)[None] for b in range(2)]
    for b, sources in enumerate(repeated):
        found = net.apply(X, net.summarise(X, weights))[b]
        torch.testing.assert_close(found, net.apply(X[b : b + 1], net.summarise(sources))[0], rtol=1e-14, atol=1e-14)


def test_many_tokens_of_few_cells_cost_no_pairs_of_tokens():
    X = tokens(1, 200_000, 6)
    net = network("max(norm(x-y))")
    out = net(X)  # 4e10 pairs
    torch.testing.assert_close(out[:, :50], net.apply(X[:, :50], net.summarise(X)))


@over_sources
def test_where_own_cells_are_too_many_to_count_in_tokens_are_taken_one_by_one(source, monkeypatch):
    X, net = tokens(5, 30), network(source)
    wanted = net(X)
    monkeypatch.setattr(cell_sumformer, "BATCH_ELEMENTS", 2)
    torch.testing.assert_close(net(X), wanted, rtol=1e-14, atol=1e-14)


def test_own_cells_have_numbers():
    """257^4 of them, which no memory holds, are no matter; the numbers of 257^8 would be those of others."""
    source = "max(y[0] + norm(x))"
    X = torch.rand(2, 9, 4, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    torch.testing.assert_close(network(source, (257,) * 4)(X), naive(source, X, (257,) * 4), rtol=1e-13, atol=1e-13)
    with pytest.raises(InputError, match="cells of own tokens"):
        CellSumformer(source, 8, [257] * 8, "float64")


def test_reductions_that_read_other_coordinates_have_tables_of_their_own():
    """max(y) ∈ ℝ^d is d tables of K cells, never one of K^d."""
    d = 40
    X = torch.rand(3, 9, d, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    net = network("max(y) - min(abs(x - y))*mean(y[0])", cells=(50,) * d)
    assert net.latent_dimension == 50 * d
    torch.testing.assert_close(net(X), naive("max(y) - min(abs(x - y))*mean(y[0])", X, (50,) * d), rtol=1e-13, atol=0)
    whole = network("max(y*mean(norm(x - y)))", cells=(3, 4))
    assert whole.latent_dimension == 12
    apart = network("cat(max(y[1]), max(y[0]*x[1]))", cells=(3, 4))
    assert apart.latent_dimension == 4 + 3
    assert [family.own for family in apart.families] == [(), (1,)]


def test_tokens_on_edges_and_outside_have_a_cell():
    net = network("mean(y[0])", cells=(4,))
    x = torch.tensor([[[0.0]], [[0.25]], [[1.0]], [[-3.0]], [[9.0]]], dtype=torch.float64)
    assert net.quantise(x)[:, 0].tolist() == [0, 1, 3, 0, 3] == [net.cell_by_hand(t[0].tolist()) for t in x]


def test_narrow_tokens_go_in_and_out():
    X = tokens(3, 4, dtype=torch.float32)
    net = network("max(norm(x-y))", arithmetic="mixed")
    assert net(X).dtype == torch.float32
    torch.testing.assert_close(net(X).double(), naive("max(norm(x-y))", X.double(), (3, 4)), rtol=1e-6, atol=1e-7)


def test_what_is_saved_comes_back(tmp_path):
    X, net = tokens(3, 4), network("max(norm(x-y))")
    net.save_pretrained(tmp_path)
    assert torch.equal(CellSumformer.from_pretrained(tmp_path)(X), net(X))


@pytest.mark.parametrize("source", ["max(norm(x-y)*y)", "x*mean_others(y) + max(y)"])
@pytest.mark.parametrize("traced", [cell_sumformer.TRACED, 1])  # pairs of cells, pairs of a token and a cell
def test_compiled_once_for_all_lengths(source, traced, monkeypatch):
    monkeypatch.setattr(cell_sumformer, "TRACED", traced)
    torch.compiler.reset()
    net = network(source)
    compiled = torch.compile(net, fullgraph=True, dynamic=True)
    for batch, n in ((2, 6), (3, 17), (2, 40)):
        X = tokens(batch, n, n)
        torch.testing.assert_close(compiled(X), net(X), rtol=1e-13, atol=1e-13)


def test_x_itself_has_gradients_and_cells_have_none():
    X = tokens(1, 6).requires_grad_()
    (grad,) = torch.autograd.grad(network("x*max(y[0])")(X).sum(), X)
    assert torch.equal(grad, network("max(y[0])")(X.detach()).expand(-1, -1, 2))


def test_wrong_use_is_explained(tmp_path):
    with pytest.raises(InputError, match="numbers of cells"):
        CellSumformer("max(y)", 2, [3], "float64")
    with pytest.raises(InputError, match="expected arithmetic"):
        CellSumformer("max(y)", 1, [3], "float16")
    with pytest.raises(ShapeError):
        network("max(y[0])").summarise(tokens(1, 3), torch.ones(1, 4))
    wide = network("max(norm(y - x))", cells=(257, 256))
    with pytest.raises(NotSupportedError, match="65792 × 65792: run it uncompiled"):
        export_onnx(wide, tmp_path / "wide.onnx", tokens(1, 3))

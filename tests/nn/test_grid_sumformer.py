"""The network of the discontinuous proof, beside its definition written out token by token."""

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.nn import GridSumformer, OpaqueGridSumformer
from sumformer.nn.codes import CODES
from sumformer.targets import target
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.grid_tables import fill_tables

SOURCES = ("max(norm(x-y))", "x + sum_others(y)**2", "mean(norm(y-mean(y)))", "min(cat(x,y)) - x[0]")


def network(source, d=2, n=4, cells=3, code="lanes", arithmetic="float64"):
    net = GridSumformer(source, d, n, [cells] * d, code, arithmetic)
    fill_tables(net, Box.unit(d))
    return net.requires_grad_(False)


def naive(source, X, cells):
    """f at (x_i, the centres of the other tokens' cells), by the target's own evaluation."""
    _, n, d = X.shape
    f = target(source, n=n, d=d)
    centre = ((X * cells).floor().clamp(0, cells - 1) + 0.5) / cells
    rows = []
    for i in range(n):
        others = torch.cat([centre[:, :i], centre[:, i + 1 :]], dim=1)
        rows.append(f(torch.cat([X[:, i : i + 1], others], dim=1))[:, 0])
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("n", [2, 4])
def test_it_is_the_target_at_the_centres_of_the_others(source, n):
    X = torch.rand(20, n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(network(source, n=n)(X), naive(source, X, 3), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("source", SOURCES)
def test_all_codes_give_the_same_network(source):
    X = torch.rand(16, 4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    X[::2, 2] = X[::2, 1]
    results = [network(source, code=code)(X) for code in CODES]
    assert all(torch.equal(results[0], other) for other in results[1:])


def test_it_is_equivariant_and_padding_does_not_matter():
    X = torch.rand(6, 4, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    net = network("max(norm(x-y)) + mean(y[0])")
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(net(X[:, order]), net(X)[:, order], rtol=1e-14, atol=1e-14)
    mask = torch.tensor([[1, 1, 0, 1]] * 3 + [[0, 1, 1, 0]] * 3)
    X[mask == 0] = torch.nan
    out = net(X, attention_mask=mask)
    assert torch.equal(out[mask == 0], torch.zeros_like(out[mask == 0]))
    assert torch.equal(out[0, mask[0] == 1], net(X[:1, mask[0] == 1])[0])


def test_tokens_on_edges_and_outside_have_a_cell():
    net = network("mean(y[0])", d=1, n=2, cells=4)
    x = torch.tensor([[[0.0]], [[0.25]], [[1.0]], [[-3.0]], [[9.0]]], dtype=torch.float64)
    assert net.quantise(x)[:, 0].tolist() == [0, 1, 3, 0, 3]


@pytest.mark.parametrize("arithmetic", ["float32", "mixed"])
def test_narrow_tokens_go_in_and_out(arithmetic):
    X = torch.rand(3, 4, 2)
    net = network("max(norm(x-y))", arithmetic=arithmetic)
    assert net(X).dtype == torch.float32
    torch.testing.assert_close(net(X).double(), naive("max(norm(x-y))", X.double(), 3), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("code", CODES)
def test_what_is_saved_comes_back(tmp_path, code):
    X = torch.rand(3, 4, 2, dtype=torch.float64)
    net = network("max(norm(x-y))", code=code)
    net.save_pretrained(tmp_path)
    assert torch.equal(GridSumformer.from_pretrained(tmp_path)(X), net(X))


def test_wrong_use_is_explained():
    net = network("max(y)")
    with pytest.raises(ShapeError, match="at most n = 4"):
        net(torch.rand(1, 5, 2, dtype=torch.float64))
    with pytest.raises(InputError, match="numbers of cells"):
        GridSumformer("max(y)", 2, 4, [3], "lanes", "float64")
    with pytest.raises(InputError, match="expected arithmetic"):
        GridSumformer("max(y)", 1, 4, [3], "lanes", "float16")
    with pytest.raises(InputError, match="only the name"):
        OpaqueGridSumformer("m:f", 1, 1, 2, [3], "lanes", "float64")(torch.rand(1, 2, 1))

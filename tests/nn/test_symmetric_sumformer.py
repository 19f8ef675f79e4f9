"""The polynomial ψ of power sums against its formula, masks, weights, saving, compilation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sumformer.errors import FileFormatError, InputError
from sumformer.nn import SymmetricSumformer
from sumformer.testing import equivariance_error

OWN = [[0, 0], [2, 1]]
FEATURES = [[1, 0], [0, 3], [2, 2]]
PRODUCTS = [[0, 0], [0, 2], [1, 0], [1, 1], [3, 1]]  # q0, q2, q0 q0, q0 q1, q0 q0 q1
TERMS = [[0, 0], [1, 0], [0, 2], [1, 4], [0, 5]]


def network(arithmetic: str = "float64", width: int = 2) -> SymmetricSumformer:
    net = SymmetricSumformer(2, 4, width, ["1/2", "0"], ["1/2", "2"], arithmetic, OWN, FEATURES, PRODUCTS, TERMS)
    torch.manual_seed(0)
    with torch.no_grad():
        net.coefficients.copy_(torch.randn(net.coefficients.shape))
    return net.eval()


def tokens(n: int = 4, batch: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(n)
    scale = torch.tensor([1.0, 4.0])
    return (torch.rand(batch, n, 2) * scale - torch.tensor([0.0, 2.0])).to(dtype)


def formula(net: SymmetricSumformer, X: Tensor) -> Tensor:
    """Token by token, cosines instead of a recurrence."""
    u = (X.double() - torch.tensor([0.5, 0.0])) / torch.tensor([0.5, 2.0])
    angle = u.arccos()

    def T(k: list[int]) -> Tensor:
        return torch.cos(k[0] * angle[..., 0]) * torch.cos(k[1] * angle[..., 1])

    q = [T(beta).sum(1, keepdim=True) - T(beta) for beta in FEATURES]
    nodes = [torch.ones_like(q[0]), q[0], q[2], q[0] * q[0], q[0] * q[1], q[0] * q[0] * q[1]]
    values = torch.stack([T(OWN[a]) * nodes[p] for a, p in TERMS], dim=-1)
    return values @ net.coefficients.detach().double()


@pytest.mark.parametrize(("arithmetic", "tolerance"), [("float64", 1e-12), ("float32", 1e-4), ("mixed", 1e-5)])
def test_it_is_its_formula(arithmetic: str, tolerance: float):
    net = network(arithmetic)
    X = tokens(dtype=net.outside)
    out = net(X)
    assert out.dtype == net.outside
    assert out.shape == (3, 4, 2)
    torch.testing.assert_close(out.double(), formula(net, X), rtol=tolerance, atol=tolerance)
    assert net.latent_dimension == 3


def test_equivariance_padding_and_weights():
    net, X = network(), tokens()
    assert equivariance_error(net, X) < 1e-12
    padded = torch.cat([X, torch.full((3, 2, 2), torch.nan, dtype=X.dtype)], dim=1)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 3)
    out = net(padded, attention_mask=mask)
    torch.testing.assert_close(out[:, :4], net(X), rtol=1e-13, atol=1e-13)
    assert bool((out[:, 4:] == 0).all())
    twice = X[:, [0, 1, 1, 1]]
    state = net.summarise(X[:, :2], torch.tensor([[1.0, 3.0]] * 3, dtype=X.dtype))
    torch.testing.assert_close(net.apply(X[:, :2], state), net(twice)[:, :2], rtol=1e-12, atol=1e-12)
    assert bool((state.count == 4).all())


def test_slabs_do_not_change_it(monkeypatch: pytest.MonkeyPatch):
    net, X = network(), tokens()
    whole = net(X)
    monkeypatch.setattr("sumformer.nn.box_features.SLAB_ELEMENTS", 20)
    torch.testing.assert_close(net(X), whole, rtol=1e-14, atol=1e-14)


def test_gradients_are_those_of_the_formula():
    net, X = network(), tokens()
    left, right = X.clone().requires_grad_(), X.clone().requires_grad_()
    net(left).sum().backward()
    formula(net, right).sum().backward()
    torch.testing.assert_close(left.grad, right.grad, rtol=1e-9, atol=1e-9)


def test_saved_and_read_back(tmp_path):
    net, X = network(), tokens()
    net.save_pretrained(tmp_path)
    again = SymmetricSumformer.from_pretrained(tmp_path)
    assert torch.equal(again(X), net(X))
    assert again.config() == net.config()


def test_one_graph():
    net, X = network(), tokens()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), net(X), rtol=1e-13, atol=1e-13)
    program = torch.export.export(net, (X,))
    torch.testing.assert_close(program.module()(X), net(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("products", [[0, 0], [2, 1]]),  # a parent that comes later
        ("products", [[0, 0], [1, 1], [0, 2]]),  # not by level
        ("features", [[1, 0], [1, 0], [2, 2]]),  # twice the same
        ("features", [[0, 0], [0, 3], [2, 2]]),  # the number of tokens is no feature
        ("own", [[0], [2]]),
        ("terms", [[0, 9]]),
        ("terms", [[-1, 0]]),
        ("radius", ["1/2", "0"]),
        ("arithmetic", "float16"),
    ],
)
def test_nonsense_is_refused(name: str, value: object, tmp_path):
    arguments = network().config() | {name: value}
    arguments.pop("type")
    with pytest.raises(InputError):
        SymmetricSumformer(**arguments)


def test_a_file_of_nonsense_is_a_file_error(tmp_path):
    network().save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"tokens": 4', '"tokens": 0'))
    with pytest.raises(FileFormatError):
        SymmetricSumformer.from_pretrained(tmp_path)

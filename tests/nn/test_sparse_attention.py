"""SparseAttention against the dense masked form: values and gradients, padded, causal, with every normaliser."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sumformer.errors import InputError
from sumformer.nn.normalisers import Entmax15, Hardmax, Softmax, Sparsemax
from sumformer.nn.patterns import BigBird, Fixed, Longformer, Random, Star, Strided, Window, steps_of_heads
from sumformer.nn.sparse_attention import SparseAttention
from sumformer.nn.sparse_lists import list_logits, list_mix
from sumformer.testing import equivariance_error, padding_error, relative_error

D = 6
PATTERNS = [
    Window(0),
    Window(2),
    Window(45),
    Strided(3),
    Strided(40),
    Fixed(3),
    Fixed(40),
    Star(),
    Star(33),
    Longformer(2, 3),
    Longformer(1, 70),
    Random(3, seed=1),
    Random(60),
    BigBird(1, 2, 3),
]
over_patterns = pytest.mark.parametrize("pattern", PATTERNS, ids=str)
COMPOSITIONS = [("union", 0), ("sequential", 0), ("sequential", 1), ("multihead", 0)]
over_orders = pytest.mark.parametrize("is_causal", [False, True], ids=["both ways", "causal"])


def tokens(n, batch=2, dtype=torch.float64):
    return torch.randn(batch, n, D, generator=torch.Generator().manual_seed(n), dtype=dtype)


def make(pattern, **arguments):
    torch.manual_seed(0)
    return SparseAttention(D, pattern, nhead=2, **arguments).double()


def naive_sparse_attention(layer, x, is_causal=False):
    """The definition, with the whole attention matrix in memory."""
    steps = steps_of_heads(layer.pattern, layer.composition, layer.nhead, layer.layer)
    connected = torch.stack([step.matrix(x.shape[1], is_causal) for step in steps]).to(x.device)
    logits = layer.queries(x) @ layer.keys(x).mT * (layer.d_head**-0.5 if layer.scale else 1.0)
    return layer.join(layer.normaliser(logits, connected) @ layer.values(x), x)


def compare(layer, x, is_causal=False):
    x.requires_grad_(True)
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    got, wanted = layer(x, is_causal=is_causal), naive_sparse_attention(layer, x, is_causal)
    weights = [x, *layer.parameters()]
    got_gradients = torch.autograd.grad(got, weights, upstream, materialize_grads=True)
    wanted_gradients = torch.autograd.grad(wanted, weights, upstream, materialize_grads=True)
    # The gradient of a weight may vanish altogether, as that of W_Q where each token has one neighbour.
    for g, w in zip((got, *got_gradients), (wanted, *wanted_gradients), strict=True):
        assert (g - w).abs().max() <= 1e-12 * max(1.0, float(w.detach().abs().max()))


@over_orders
@pytest.mark.parametrize("n", [1, 5, 32, 75])
@over_patterns
def test_equals_the_dense_masked_form(pattern, n, is_causal):
    for composition, number in COMPOSITIONS[: 1 if pattern.p == 1 else 4]:
        compare(make(pattern, composition=composition, layer=number), tokens(n), is_causal)


@over_orders
@pytest.mark.parametrize("rho", [Hardmax, Sparsemax, Entmax15, Softmax], ids=lambda rho: rho.__name__)
@pytest.mark.parametrize("pattern", [Star(2), Strided(4), Fixed(4), BigBird(1, 1, 2)], ids=str)
def test_every_normaliser(pattern, rho, is_causal):
    compare(make(pattern, normaliser=rho(), scale=False, query_bias=True, d_head=2), tokens(41), is_causal)


@over_patterns
def test_padding_is_out_of_sight(pattern):
    for composition in ("union", "multihead")[: pattern.p]:
        layer = make(pattern, composition=composition)
        for interleave in (False, True):
            error = padding_error(layer, tokens(9), (1, 40), interleave=interleave)
            assert max(error.output, error.gradient) <= 1e-12
            assert error.leak == 0


@over_patterns
def test_rows_of_different_lengths(pattern):
    layer, x = make(pattern), tokens(50, batch=3)
    keep = torch.rand(3, 50, generator=torch.Generator().manual_seed(0)) < 0.6
    keep[2] = False
    for is_causal in (False, True):
        x[~keep] = math.nan
        leaf = x.clone().requires_grad_(True)
        out = layer(leaf, key_padding_mask=~keep, is_causal=is_causal)
        for row in range(2):
            wanted = naive_sparse_attention(layer, x[row : row + 1, keep[row]], is_causal)[0]
            assert relative_error(out[row, keep[row]], wanted) <= 1e-12
        assert (out[~keep] == 0).all()
        (gradient,) = torch.autograd.grad(out.sum(), leaf)
        assert (gradient[~keep] == 0).all()


@over_patterns
def test_packs(pattern):
    layer, x = make(pattern), tokens(40, batch=1)
    ends = torch.tensor([0, 7, 7, 30, 40], dtype=torch.int32)
    got = layer(x, cu_seqlens=ends, max_seqlen=23)
    pieces = [naive_sparse_attention(layer, x[:, a:b]) for a, b in ((0, 7), (7, 30), (30, 40))]
    assert relative_error(got, torch.cat(pieces, 1)) <= 1e-12


@over_patterns
def test_later_tokens_change_nothing_in_causal_order(pattern):
    layer, x = make(pattern), tokens(40)
    whole = layer(x, is_causal=True)
    for i in (1, 17, 39):
        assert relative_error(layer(x[:, :i], is_causal=True), whole[:, :i]) <= 1e-12
        later = torch.cat([x[:, :i], torch.full_like(x[:, i:], math.inf)], 1)
        assert relative_error(layer(later, is_causal=True)[:, :i], whole[:, :i]) <= 1e-12


def test_bound_to_the_order_of_tokens():
    layer = make(Window(1))
    assert not layer.equivariant
    assert equivariance_error(layer, tokens(9)) > 1e-3


class LargestTensor(TorchDispatchMode):
    """The most elements that any tensor made inside has."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.untyped_storage().nbytes() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *(size // 4 for size in sizes)])
        return out


@pytest.mark.parametrize(
    "pattern", [Window(16), Star(16), Strided(64), Fixed(64), Longformer(16, 4), Random(16), BigBird(16, 4, 3)], ids=str
)
def test_memory_is_that_of_the_connections(pattern):
    """Forward and backward at n = 4096: nothing near n² = 16.8 million."""
    n = 4096
    layer, x = SparseAttention(16, pattern, nhead=1), torch.randn(1, n, 16, requires_grad=True)
    with LargestTensor() as seen:
        layer(x).sum().backward()
    assert seen.elements <= 3 * pattern.connections(n) + 8 * n * 16
    assert seen.elements < n**2 / 8


@pytest.mark.parametrize("pattern", [Star(2), Strided(3), BigBird(1, 1, 2)], ids=str)
def test_half_precision(pattern):
    x = tokens(40)
    wanted = make(pattern)(x)
    for dtype, limit in ((torch.float32, 1e-5), (torch.bfloat16, 4e-2)):
        got = make(pattern).to(dtype)(x.to(dtype))
        assert got.dtype == dtype
        assert relative_error(got, wanted) <= limit


def test_lists_have_gradients_of_every_order():
    places = torch.tensor([[[0, 2], [1, 1], [2, 0]]])
    q, k = (torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    w = torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    for function, inputs in (
        (lambda q, k: list_logits(q, k, places), (q, k)),
        (lambda w, k: list_mix(w, k, places), (w, k)),
    ):
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)


def test_saved_and_read(tmp_path):
    layer = make(Fixed(3), composition="multihead", normaliser=Sparsemax())
    layer.save_pretrained(tmp_path)
    again = SparseAttention.from_pretrained(tmp_path)
    assert again.config() == layer.config()
    assert again.pattern == layer.pattern
    assert torch.equal(again(tokens(9)), layer(tokens(9)))


def test_refusals():
    with pytest.raises(InputError, match="expected a Pattern, got str"):
        SparseAttention(D, "star")
    with pytest.raises(InputError, match="expected composition"):
        SparseAttention(D, Star(), composition="all")


@over_orders
@pytest.mark.parametrize("pattern", [Random(3), BigBird(1, 2, 3)], ids=str)
def test_transforms_of_torch_func(pattern, is_causal):
    """vmap and gradients per sample against a loop; jvp against the gradient, ⟨u, J v⟩ = ⟨Jᵀ u, v⟩."""
    layer, X = make(pattern), torch.stack([tokens(n)[:, :9] for n in (9, 10, 11)])
    weights = dict(layer.named_parameters())

    def run(x, weights=weights):
        return torch.func.functional_call(layer, weights, (x,), {"is_causal": is_causal})

    assert relative_error(torch.func.vmap(run)(X), torch.stack([run(x) for x in X])) <= 1e-12
    got = torch.func.vmap(torch.func.grad(lambda w, x: run(x, w).square().sum()), (None, 0))(weights, X)
    for i, x in enumerate(X):
        wanted = torch.autograd.grad(run(x).square().sum(), list(weights.values()))
        assert all(relative_error(got[name][i], g) <= 1e-12 for name, g in zip(weights, wanted, strict=True))
    x, v = X[0].clone().requires_grad_(True), X[1]
    _, along = torch.func.jvp(run, (X[0],), (v,))
    (back,) = torch.autograd.grad(run(x), x, X[2])
    assert relative_error((along * X[2]).sum(), (back * v).sum()) <= 1e-11

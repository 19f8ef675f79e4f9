"""Σ(A ⊎ B) = Σ(A) + Σ(B): merging, deleting, windows, streams and shards against one full pass."""

from __future__ import annotations

import pytest
import torch

from sumformer.errors import ShapeError
from sumformer.nn import MLP, DeepSets, Summary, SumMixer, mlp_sumformer, polynomial_sumformer
from sumformer.nn.summary import accumulation_dtype, summarise
from sumformer.testing import relative_error

NETS = {
    "mlp": lambda: mlp_sumformer(4, 8, 3),
    "mean": lambda: mlp_sumformer(4, 8, 3, mean=True),
    "polynomial": lambda: polynomial_sumformer(4, 3, 3),
    "sum_mixer": lambda: SumMixer(4, 6),
    "sum_mixer-sum": lambda: SumMixer(4, 6, mean=False),
}


@pytest.fixture
def net(request):
    torch.manual_seed(0)
    return request.param().double().eval()


def tokens(n, seed=1):
    return torch.randn(2, n, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(got: Summary, wanted: Summary):
    return max(relative_error(got.total, wanted.total), relative_error(got.count, wanted.count)) <= 1e-12


over_nets = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys(), indirect=True)


@over_nets
def test_apply_at_the_sources_is_the_full_pass(net):
    x = tokens(10)
    assert relative_error(net.apply(x, net.summarise(x)), net(x)) <= 1e-13


@over_nets
def test_merge_and_subtract(net):
    a, b = tokens(7, 1), tokens(5, 2)
    both = net.summarise(torch.cat([a, b], 1))
    assert same(net.summarise(a) + net.summarise(b), both)
    assert same(both - net.summarise(b), net.summarise(a))
    nothing = both - both
    assert (nothing.mean() == 0).all()
    assert (nothing.count == 0).all()


@over_nets
def test_queries_may_differ_from_sources(net):
    x, z = tokens(4, 1), tokens(9, 2)
    got = net.apply(x, net.summarise(z))
    assert got.shape[:2] == (2, 4)
    for i in range(4):
        assert relative_error(net.apply(x[:, i : i + 1], net.summarise(z))[:, 0], got[:, i]) <= 1e-13
    # a query among the sources: the full pass, read at the query
    assert relative_error(net.apply(z[:, :1], net.summarise(z)), net(z)[:, :1]) <= 1e-13


@over_nets
def test_shards(net):
    x = tokens(23)
    first, *rest = (net.summarise(shard) for shard in x.split(6, dim=1))
    assert relative_error(net.apply(x, sum(rest, first)), net(x)) <= 1e-12


@over_nets
def test_a_stream_sees_every_prefix(net):
    x, state = tokens(12), None
    for k in range(12):
        new = net.summarise(x[:, k : k + 1])
        state = new if state is None else state + new
        prefix = x[:, : k + 1]
        assert relative_error(net.apply(x[:, k : k + 1], state), net(prefix)[:, -1:]) <= 1e-12


@over_nets
def test_a_sliding_window_adds_at_the_front_and_deletes_at_the_back(net):
    x, width = tokens(20), 6
    state = net.summarise(x[:, :width])
    for k in range(width, 20):
        state = state + net.summarise(x[:, k : k + 1]) - net.summarise(x[:, k - width : k - width + 1])
        window = x[:, k - width + 1 : k + 1]
        assert relative_error(net.apply(window, state), net(window)) <= 1e-11


@over_nets
def test_weights_are_multiplicities(net):
    x = tokens(5)
    times = torch.tensor([[1, 3, 0, 2, 1], [2, 0, 0, 1, 4]])
    state = net.summarise(x, times)
    for row in range(2):
        repeated = x[row].repeat_interleave(times[row], dim=0).unsqueeze(0)
        wanted = net.summarise(repeated)
        assert relative_error(state.total[row], wanted.total[0]) <= 1e-13
        assert state.count[row] == wanted.count[0]
    half = net.summarise(x, torch.full((2, 5), 0.5))
    assert same(half + half, net.summarise(x))


@over_nets
def test_masks_take_tokens_out_of_the_summary_whatever_they_hold(net):
    x, keep = tokens(6), torch.tensor([[1, 1, 0, 1, 0, 1], [0, 1, 1, 0, 1, 1]]).bool()
    broken = x.masked_fill(~keep.unsqueeze(-1), torch.nan)
    mask = {"key_padding_mask": ~keep} if isinstance(net, SumMixer) else {"attention_mask": keep}
    compacted = x[keep].unflatten(0, (2, 4))
    assert same(net.summarise(broken, **mask), net.summarise(compacted))
    weights = torch.rand(2, 6, dtype=torch.float64)
    wanted = net.summarise(compacted, weights[keep].unflatten(0, (2, 4)))
    assert same(net.summarise(broken, weights.masked_fill(~keep, torch.nan), **mask), wanted)


@over_nets
def test_gradients_flow_through_the_summary(net):
    x = tokens(6).requires_grad_(True)
    (wanted,) = torch.autograd.grad(net(x).square().sum(), x)
    state = net.summarise(x[:, :2]) + net.summarise(x[:, 2:])
    (got,) = torch.autograd.grad(net.apply(x, state).square().sum(), x)
    assert relative_error(got, wanted) <= 1e-12


def test_deep_sets_merge_too():
    torch.manual_seed(0)
    net, x = DeepSets(MLP(4, 8), MLP(8, 3)).double(), tokens(9)
    state = net.summarise(x[:, :4]) + net.summarise(x[:, 4:])
    assert relative_error(net.apply_summary(state, x.dtype), net(x)) <= 1e-13


def test_bad_weights_and_strangers_are_refused():
    net = mlp_sumformer(4, 8, 3).double()
    with pytest.raises(ShapeError, match=r"weights of shape \(batch, n\) = \(2, 5\), got shape \(2, 4\)"):
        net.summarise(tokens(5), torch.ones(2, 4))
    with pytest.raises(ShapeError, match="latent dimension 8"):
        net.summarise(tokens(5)) + mlp_sumformer(4, 7, 3).double().summarise(tokens(5))
    with pytest.raises(ShapeError, match=r"PairMLP \(Σ\): expected a tensor of shape \(…, 8\)"):
        net.apply(tokens(5), mlp_sumformer(4, 7, 3).double().summarise(tokens(5)))
    with pytest.raises(ShapeError, match=r"expected a tensor of shape \(batch, n, d\)"):
        net.apply(tokens(5)[0], net.summarise(tokens(5)))
    with pytest.raises(TypeError, match="queries x and a Summary, got NoneType"):
        net.apply(tokens(5))


def test_apply_of_a_function_is_still_torchs():
    seen = []
    net = mlp_sumformer(4, 8, 3)
    assert net.apply(seen.append) is net
    assert len(seen) == len(list(net.modules()))


def test_the_sum_is_kept_in_float32_or_wider():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert accumulation_dtype(dtype) == torch.float32
        assert summarise(torch.ones(1, 3, 2, dtype=dtype), None, None).total.dtype == torch.float32
    assert accumulation_dtype(torch.float64) == torch.float64


def test_the_mean_of_nothing_is_zero_with_zero_gradient():
    total = torch.zeros(1, 3, requires_grad=True)
    mean = Summary(total, torch.zeros(1)).mean()
    assert (mean == 0).all()
    mean.sum().backward()
    assert (total.grad == 0).all()


def test_python_s_sum_merges_summaries():
    parts = [Summary(torch.full((1, 3), float(k)), torch.tensor([2.0])) for k in (1, 2, 4)]
    merged = sum(parts)
    assert torch.equal(merged.total, torch.full((1, 3), 7.0))
    assert torch.equal(merged.count, torch.tensor([6.0]))
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + parts[0]

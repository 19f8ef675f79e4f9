"""On a GPU: the mixing layer against its definition; masks, packs, causal order, graphs, two runs, one compile."""

from __future__ import annotations

import pytest
import torch

from sumformer.kernels import short_mix
from sumformer.kernels.availability import SWITCH, obstacle
from sumformer.kernels.layout import Layout
from sumformer.kernels.prefix_sum import prefix_sum
from sumformer.kernels.sum_mix import sum_mix
from sumformer.nn import SumMixer
from sumformer.testing import relative_error

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available() or obstacle() is not None, reason=f"kernels: {obstacle()}"),
]
LIMIT = {torch.bfloat16: 1e-2, torch.float16: 2e-3}


def layers(d: int, dtype: torch.dtype, **keywords) -> tuple[SumMixer, SumMixer]:
    """The layer on the GPU, and its definition in float64."""
    torch.manual_seed(0)
    net = SumMixer(d, **keywords).cuda().to(dtype)
    exact = SumMixer(d, **{k: v for k, v in keywords.items() if k != "recompute"}).cuda().double()
    exact.load_state_dict(net.state_dict())
    return net, exact


def compare(net: SumMixer, exact: SumMixer, x: torch.Tensor, **keywords) -> None:
    """Values and gradients are as near to float64 as torch's own operators in the same dtype come."""
    x = x.requires_grad_()
    y = x.detach().double().requires_grad_()
    wanted = exact(y, **keywords)
    grad = torch.randn(wanted.shape, device="cuda", dtype=x.dtype)
    wanted = [wanted, *torch.autograd.grad(wanted, [y, *exact.parameters()], grad.double())]

    def found() -> list[torch.Tensor]:
        out = net(x, **keywords)
        return [out, *torch.autograd.grad(out, [x, *net.parameters()], grad)]

    got = found()
    with torch.no_grad():  # where nothing is kept, kernels write less, and elsewhere
        assert torch.equal(net(x, **keywords), got[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        plain = found()
    for g, p, w in zip(got, plain, wanted, strict=True):
        ours, theirs = ((v.double() - w).norm() / w.norm() for v in (g, p))
        assert ours <= 1.2 * theirs + LIMIT[x.dtype] / 10


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "relu", "silu", "tanh"])
def test_values_and_gradients(dtype, recompute, activation):
    net, exact = layers(256, dtype, recompute=recompute, activation=activation)
    compare(net, exact, torch.randn(3, 3001, 256, device="cuda", dtype=dtype))


@pytest.mark.parametrize(
    ("batch", "n"), [(1, 1), (1, 77), (2, 128), (1, 256), (3, 300), (1, 513), (1, 1024), (2, 1100), (1, 4096)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_few_tokens(batch, n, masked):
    """One launch forward; the weights' gradients have another path than those of many tokens."""
    net, exact = layers(256, torch.float16 if n == 77 else torch.bfloat16, mean=n != 256)
    x = torch.randn(batch, n, 256, device="cuda", dtype=net.phi.weight.dtype)
    mask = torch.rand(batch, n, device="cuda") > 0.6 if masked and n > 1 else None
    rows, layout = x.flatten(0, 1), Layout(batch, n, batch * n)
    assert short_mix.shape_for(rows, net.phi.weight, net.from_token.weight, net.out.weight, layout)
    if mask is not None:
        x[mask] = float("nan")
    compare(net, exact, x, key_padding_mask=mask)


@pytest.mark.parametrize(("batch", "n"), [(1, 5000), (1, 20000), (2, 4096), (4, 8192), (3, 384 * 11), (16, 256)])
@pytest.mark.parametrize("recompute", [False, True])
def test_tiles_that_lie_in_one_sequence_each(batch, n, recompute):
    net, exact = layers(256, torch.bfloat16, recompute=recompute)
    compare(net, exact, torch.randn(batch, n, 256, device="cuda", dtype=torch.bfloat16))


@pytest.mark.parametrize("n", [200, 1000, 9000])
def test_a_latent_of_another_width(n):
    net, exact = layers(256, torch.bfloat16, d_latent=640)
    compare(net, exact, torch.randn(2, n, 256, device="cuda", dtype=torch.bfloat16))


def test_how_programs_meet():
    """What one wrote before is seen behind: the orders of memory that say so are in the compiled text, twice."""
    from sumformer.kernels.layer_triton import layer

    net, _ = layers(256, torch.bfloat16)
    with torch.no_grad():
        net(torch.randn(1, 200, 256, device="cuda", dtype=torch.bfloat16))
    texts = [kernel.asm["ptx"] for cache in layer.device_caches.values() for kernel in cache[0].values()]
    assert texts
    for text in texts:
        assert text.count("atom.global.gpu.acq_rel.add") == 3
        assert text.count("ld.global.gpu.acquire") == 2
        assert "ld.global.nc" not in text


@pytest.mark.parametrize("d", [100, 136])
def test_widths_that_fill_no_tile(d):
    net, exact = layers(d, torch.bfloat16)
    for n in (50, 3001):
        compare(net, exact, torch.randn(2, n, d, device="cuda", dtype=torch.bfloat16))


def test_nothing_is_compiled_for_a_new_length():
    from sumformer.kernels import columns_triton, layer_triton, pass_triton, product_triton

    net, _ = layers(256, torch.bfloat16)
    kernels = [columns_triton.shift_columns, columns_triton.pull_columns, columns_triton.spread_columns]
    kernels += [layer_triton.layer, product_triton.long_sums, product_triton.long_hidden, pass_triton.activation_pass]
    kernels += [pass_triton.sum_tiles]

    def compiled(*lengths: int) -> int:
        for n in lengths:
            net(torch.randn(1, n, 256, device="cuda", dtype=torch.bfloat16).requires_grad_()).sum().backward()
        return sum(len(cache[0]) for kernel in kernels for cache in kernel.device_caches.values())

    first = compiled(256, 4096, 8192)
    assert first >= len(kernels)
    assert compiled(1, 7, 128, 255, 257, 1000, 2000, 3333, 16384, 50001) == first


def test_masks_may_hide_nan():
    net, exact = layers(128, torch.bfloat16)
    mask = torch.rand(2, 4000, device="cuda") > 0.6
    x = torch.randn(2, 4000, 128, device="cuda", dtype=torch.bfloat16)
    x[mask] = float("nan")
    compare(net, exact, x, key_padding_mask=mask)


def test_packs():
    net, exact = layers(128, torch.bfloat16)
    lengths = torch.tensor([0, 1, 700, 4000, 0, 299], dtype=torch.int32)
    cu = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)).cuda()
    x = torch.randn(1, 5000, 128, device="cuda", dtype=torch.bfloat16)
    compare(net, exact, x, cu_seqlens=cu, max_seqlen=4000)


def test_a_long_pack():
    net, exact = layers(256, torch.bfloat16)
    cu = torch.tensor([0, 20000, 20000, 33333, 50001], dtype=torch.int32, device="cuda")
    compare(
        net, exact, torch.randn(1, 50001, 256, device="cuda", dtype=torch.bfloat16), cu_seqlens=cu, max_seqlen=20000
    )


def test_causal_order():
    net, exact = layers(128, torch.bfloat16)
    compare(net, exact, torch.randn(2, 5000, 128, device="cuda", dtype=torch.bfloat16), is_causal=True)
    x = torch.randn(2, 5000, 70, device="cuda")
    assert relative_error(prefix_sum(x, False).double(), x.double().cumsum(1)) <= 1e-6


def test_autocast():
    net = SumMixer(128).cuda()
    x = torch.randn(2, 4000, 128, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = net(x)
    assert y.dtype == torch.bfloat16
    assert relative_error(y.float(), net(x)) <= 1e-2
    y.float().sum().backward()


@pytest.mark.parametrize("n", [200, 20000])
def test_two_runs_agree_bit_for_bit_and_a_graph_replays_them(n):
    net, _ = layers(256, torch.bfloat16)
    x = torch.randn(1, n, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    runs = [torch.autograd.grad(net(x).square().sum(), [x, *net.parameters()]) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    with torch.no_grad():
        first = net(x)
        assert torch.equal(first, net(x))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = net(x)
        graph.replay()
        assert torch.equal(out, first)


@torch.no_grad()
def test_streams_and_graphs_of_few_tokens_do_not_meet(monkeypatch):
    """Launches that may overlap count in numbers of their own; once those for graphs are used up, in a graph's own."""
    from sumformer.kernels import counters

    net, _ = layers(256, torch.bfloat16)
    inputs = [torch.randn(1, n, 256, device="cuda", dtype=torch.bfloat16) for n in (200, 256, 1000, 300)]
    wanted = [net(x) for x in inputs]
    streams = [torch.cuda.Stream() for _ in inputs]
    graphs, found = [], []
    for x, most in zip(inputs, (counters._MOST, counters._MOST, 0, 0), strict=True):
        monkeypatch.setattr(counters, "_MOST", most)
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            found.append(net(x))
    for y in found:
        y.zero_()
    torch.cuda.synchronize()
    eager: list[torch.Tensor] = []
    for _ in range(50):
        for graph, stream, x in zip(graphs, streams, reversed(inputs), strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
                eager.append(net(x))
    torch.cuda.synchronize()
    assert all(torch.equal(y, w) for y, w in zip(found, wanted, strict=True))
    assert all(torch.equal(eager[-1 - i], wanted[i]) for i in range(4))
    left = [*counters._of_streams.values(), *(numbers for numbers, _ in counters._for_graphs.values())]
    assert len(left) >= 5
    assert not any(t.any() for t in left)


def test_few_tokens_where_a_compiler_replays_graphs():
    """What is counted in is not the pool's of a compiler that lends memory while it warms up."""
    net, _ = layers(256, torch.bfloat16)
    compiled = torch.compile(net, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        for n in (100, 600):
            x = torch.randn(1, n, 256, device="cuda", dtype=torch.bfloat16)
            for _ in range(4):
                torch.compiler.cudagraph_mark_step_begin()
                assert relative_error(compiled(x).double(), net(x).double()) <= 1e-2


def test_compiled_whole_and_once():
    net, _ = layers(256, torch.bfloat16)
    compiled = torch.compile(net, fullgraph=True, dynamic=True)
    for n in (5000, 7001, 12000):
        x = torch.randn(1, n, 256, device="cuda", dtype=torch.bfloat16)
        assert relative_error(compiled(x).double(), net(x).double()) <= 1e-2


@pytest.mark.parametrize("d", [64, 128])
def test_opcheck(d):
    net, _ = layers(d, torch.bfloat16)
    weights = [net.phi.weight, net.phi.bias, net.from_token.weight, net.from_token.bias]
    weights += [net.from_sum.weight, net.out.weight, net.out.bias]
    x = torch.randn(2, 500, d, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    leaves = [w.detach().requires_grad_() for w in weights]
    for save in (True, False):
        torch.library.opcheck(sum_mix, (x, *leaves, None, None, "gelu", True, save, False), test_utils=checks)

"""On a GPU: constructed networks and power sums against their definitions."""

from __future__ import annotations

import pytest
import torch

import sumformer
from sumformer.kernels.availability import SWITCH, obstacle
from sumformer.kernels.prefix_sum import prefix_sum
from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available() or obstacle() is not None, reason=f"kernels: {obstacle()}"),
]
GAUSS = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"


@torch.no_grad()
def test_nothing_is_compiled_for_a_new_length_of_a_certified_network_or_of_prefix_sums():
    from sumformer.kernels import expression_triton, prefix_sum_triton

    net = sumformer.construct("mean(exp(-norm2(x-y)))", 1e-3, d=2).network.cuda()
    kernels = [expression_triton.feature_sums, expression_triton.evaluate, prefix_sum_triton.sum_of_tiles]
    kernels += [prefix_sum_triton.scan_of_tiles, prefix_sum_triton.scan_in_tiles]

    def compiled(*lengths: int) -> int:
        for n in lengths:
            x = torch.rand(2, n, 2, device="cuda")
            net(x), prefix_sum(x, False)
        return sum(len(cache[0]) for kernel in kernels for cache in kernel.device_caches.values())

    first = compiled(4096)
    assert first >= len(kernels)
    assert compiled(1, 7, 16, 1023, 1025, 50001) == first


@pytest.mark.parametrize("dtype", ["mixed", "float32", "float64"])
@torch.no_grad()
def test_a_constructed_network(dtype, monkeypatch):
    source = GAUSS if dtype != "float32" else GAUSS.replace("4", "1")
    network = sumformer.construct(source, 1e-3, d=2, dtype=dtype).network.cuda()
    x = torch.rand(2, 5000, 2, device="cuda", dtype=network.outside)
    mask = torch.rand(2, 5000, device="cuda") > 0.3
    got = [network(x), network(x, attention_mask=mask)]
    monkeypatch.setenv(SWITCH, "0")
    limit = 1e-13 if dtype == "float64" else 2e-6
    for y, wanted in zip(got, [network(x), network(x, attention_mask=mask)], strict=True):
        assert (y - wanted).abs().max() <= limit


@torch.no_grad()
def test_a_constructed_network_keeps_nan_and_reads_any_strides():
    network = sumformer.construct(GAUSS, 1e-3, d=2).network.cuda()
    x = torch.rand(2, 3000, 2, device="cuda", dtype=network.outside)
    mask = (torch.rand(3000, 2, device="cuda") > 0.3).t()
    assert torch.equal(network(x, attention_mask=mask), network(x, attention_mask=mask.contiguous()))
    x[0, 77, 1] = torch.nan
    found = network(x)
    assert found[0].isnan().all()
    assert found[1].isfinite().all()


@torch.no_grad()
def test_one_summary_for_more_queries_than_an_axis_of_a_grid_holds():
    network = sumformer.construct(GAUSS, 1e-3, d=2).network.cuda()
    state = network.summarise(torch.rand(1, 50, 2, device="cuda", dtype=network.outside))
    x = torch.rand(70000, 1, 2, device="cuda", dtype=network.outside)
    assert torch.equal(network.apply(x, state)[:, 0], network.apply(x.transpose(0, 1), state)[0])


@pytest.mark.parametrize(("d", "degree"), [(1, 20), (2, 14), (3, 7), (4, 6), (4, 12)])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize("n", [1, 4097, 300007, 300008])
def test_power_sums(d, degree, basis, n):
    x = torch.rand(2, n, d, device="cuda")
    keep = torch.rand(2, n, device="cuda") > 0.2
    keep[:, 0] = True
    features = PolynomialFeatures(d, degree, basis).double().cuda()
    for mask in (torch.ones_like(keep), keep):
        total, size = 0.0, 0.0
        for y, k in zip(x.double().split(2**14, 1), mask.split(2**14, 1), strict=True):
            phi = features(y) * k.unsqueeze(-1)
            total, size = total + phi.sum(1), size + phi.abs().sum(1)
        off = degree * size if basis == "monomial" else 2.0 * d * degree**2 * mask.sum(1, keepdim=True)
        hidden = torch.where(mask.unsqueeze(-1), x, torch.nan)
        got = power_sums(hidden, degree, basis, keep=None if mask.all() else mask)
        assert ((got - total).abs() <= 1e-6 * size + 2.0**-24 * off).all()


@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
def test_power_sums_on_a_large_token_and_many_small_ones(basis):
    """Where float32 sums would round at every addition."""
    x = torch.full((1, 10**6, 2), 2.0**-12, device="cuda")
    x[:, ::15] = 1.0
    phi = PolynomialFeatures(2, 4, basis).double().cuda()(x.double())
    off = 4 * phi.abs().sum(1) if basis == "monomial" else 64.0 * x.shape[1]
    got = power_sums(x, 4, basis)
    assert ((got - phi.sum(1)).abs() <= 1e-6 * phi.abs().sum(1) + 2.0**-24 * off).all()


def test_power_sums_agree_bit_for_bit_and_in_a_graph():
    x = torch.rand(3, 123457, 4, device="cuda")[:, 1:]  # not aligned
    first = power_sums(x, 6, "chebyshev")
    assert torch.equal(first, power_sums(x, 6, "chebyshev"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = power_sums(x, 6, "chebyshev")
    graph.replay()
    assert torch.equal(out, first)


def test_power_sums_compile_nothing_for_another_length():
    """Sequences that begin at a multiple of 16 bytes, and others."""
    from sumformer.kernels.power_sums_triton import add_programs, put_together, tokens_to_sums

    def compiled(*lengths: int) -> int:
        for n in lengths:
            power_sums(torch.rand(2, n, 2, device="cuda"), 5, "chebyshev")
        kernels = (tokens_to_sums, add_programs, put_together)
        return sum(len(cache[0]) for kernel in kernels for cache in kernel.device_caches.values())

    first = compiled(3000)
    assert compiled(1, 31, 3001, 3002, 50001, 300008) == first

"""Networks on a mesh on a GPU: the values of a CPU, the same bits in every run, captured in a graph."""

from __future__ import annotations

import pytest
import torch

import sumformer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
CASES = [
    ("mean((y-x)/(norm2(y-x)+0.5)**1.5)", {"d": 3}),
    ("mean_others(sigmoid((x-y)/0.01)*y)", {"d": 1, "n": "2..1000000"}),
]
over_cases = pytest.mark.parametrize(("source", "domain"), CASES)


def tokens(n: int, d: int, clustered: bool) -> torch.Tensor:
    x = torch.rand(2, n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return x.mean(1, keepdim=True).expand(-1, n, -1).contiguous() if clustered else x


@over_cases
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("n", [2, 300, 5000])
def test_values_of_a_cpu(source, domain, n, clustered):
    net = sumformer.construct(source, 5e-2, route="mesh", **domain).network
    x = tokens(n, domain["d"], clustered)
    wanted = net(x)
    torch.testing.assert_close(net.cuda()(x.cuda()).cpu(), wanted, atol=1e-11, rtol=1e-11)


@over_cases
def test_bits_and_graphs(source, domain):
    net = sumformer.construct(source, 5e-2, route="mesh", **domain).network.cuda()
    x = tokens(300_000, domain["d"], False).cuda()  # more than a group
    first = net(x)
    assert all(torch.equal(net(x), first) for _ in range(3))
    graph, held = torch.cuda.CUDAGraph(), x.clone()
    with torch.cuda.graph(graph):
        out = net(held)
    held.copy_(x / 2)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, net(x / 2))


@over_cases
def test_gradients_of_a_cpu(source, domain):
    net = sumformer.construct(source, 5e-2, route="mesh", **domain).network
    x = tokens(400, domain["d"], False).requires_grad_()
    (wanted,) = torch.autograd.grad(net(x).square().sum(), x)
    on_device = x.detach().cuda().requires_grad_()
    (found,) = torch.autograd.grad(net.cuda()(on_device).square().sum(), on_device)
    torch.testing.assert_close(found.cpu(), wanted, atol=1e-10, rtol=1e-9)

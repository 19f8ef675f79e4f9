"""A constructed network through the operators against its own definition, by the twins and in the interpreter."""

from __future__ import annotations

import pytest
import torch

import sumformer
from sumformer.errors import NotSupportedError
from sumformer.nn.expression_kernels import ExpressionKernels
from sumformer.nn.summary import Summary
from sumformer.nn.token_sum import levels
from sumformer.targets.domain import MAX_TOKENS

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"
CASES = [
    (GAUSS, 2, "mixed", 3e-7),
    (GAUSS, 2, "float32", 1e-6),
    (GAUSS, 1, "float64", 1e-14),
    ("mean(sigmoid((x-y)/0.5)) + max(x, 0.5)*norm(x)", 1, "float64", 1e-14),
    ("mean((y-x)/sqrt(norm2(x-y)+0.5))", 2, "float64", 1e-13),
    ("log(mean(exp(dot(x,y))))**3 - abs(x[0:1])/2", 2, "float64", 1e-13),
]


def check(source: str, d: int, dtype: str, limit: float, n: int) -> None:
    network = sumformer.construct(source, 1e-2, d=d, dtype=dtype).network
    kernels = ExpressionKernels(network)
    x = torch.rand(2, n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(network.outside)
    keep = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) > 0.3
    weights = torch.rand(2, n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for w, k in ((None, None), (None, keep), (weights, keep)):
        wanted = network.summarise(x, w, k)
        got = kernels.summarise(network, x, w, k, levels(MAX_TOKENS, network.group))
        assert torch.equal(got.count, wanted.count)
        assert (got.total - wanted.total).abs().max() <= limit * wanted.total.abs().max()
        state = Summary(got.total, got.count)
        y = kernels.psi_of(network, x, state.count, network._contract(state))
        assert y.dtype == network.outside
        assert (y - network.apply(x, wanted)).abs().max() <= limit


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
@torch.no_grad()
def test_the_operators_are_the_network(case):
    check(*case, n=1500)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
@torch.no_grad()
def test_the_kernels_are_the_network(case):
    check(*case, n=1100)


@pytest.mark.parametrize("source", ["mean(tanh(x-y))*tanh(x)", "mean_others(exp(x-y))"])
def test_what_they_do_not_reach_is_said(source):
    network = sumformer.construct(source, 1e-2, d=1).network
    with pytest.raises(NotSupportedError):
        ExpressionKernels(network)


def test_opcheck():
    network = sumformer.construct(GAUSS, 1e-2, d=2).network
    kernels = ExpressionKernels(network)
    seen = []

    class Record(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "sumformer" in str(func):
                seen.append((func, args))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Record():
        state = kernels.summarise(network, torch.rand(2, 50, 2).double(), None, None, levels(MAX_TOKENS, network.group))
        kernels.psi_of(network, torch.rand(2, 50, 2).double(), state.count, network._contract(state))
    assert len(seen) == 2
    for func, args in seen:
        torch.library.opcheck(func, args)

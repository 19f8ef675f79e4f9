"""One compilation of a constructed network serves every length, a single group of tokens and many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import sumformer
from sumformer.testing import TOLERANCE, relative_error

LENGTHS = (5, 77, 1000, 2000)  # of one group of 1024, and of two


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ("source", "dtype"),
    [("x - mean(y)", torch.float64), ("x - mean(y)", torch.float32), ("mean(exp(-norm2(x-y))*y)", torch.float64)],
)
def test_one_compilation_for_all_lengths(source, dtype):
    network = sumformer.construct(source, 1e-2, d=2, dtype=str(dtype).removeprefix("torch.")).network
    compilations = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]):
        compilations.append(graph)
        return graph.forward

    compiled = torch.compile(network, backend=counting, fullgraph=True, dynamic=True)
    for n in LENGTHS:
        x = torch.rand(2, n, 2, generator=torch.Generator().manual_seed(n), dtype=dtype)
        assert relative_error(compiled(x), network(x)) <= TOLERANCE[dtype]
    assert len(compilations) == 1


def test_short_sequences_are_not_filled_up_to_a_group():
    network = sumformer.construct("mean(exp(-3*norm2(x-y)))", 1e-3, d=2).network
    x = torch.rand(64, 16, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counted:
        together = network.summarise(x)
    with FlopCounterMode(display=False) as counted_one:
        network.summarise(x.reshape(1, 1024, 2))
    assert counted.get_total_flops() <= counted_one.get_total_flops()
    for row in range(3):
        alone = network.summarise(x[row : row + 1])
        assert relative_error(alone.total, together.total[row : row + 1]) <= TOLERANCE[torch.float64]

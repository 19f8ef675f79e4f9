"""One compilation of a constructed network serves every length, a single group of tokens and many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

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

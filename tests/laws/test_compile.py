"""torch.compile(fullgraph=True, dynamic=True): one graph, compiled once, serves every length, as eager computes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from sumformer.testing import relative_error

from .modules import CASES, Case, over_cases, tokens

LENGTHS = (9, 5, 2, 33, 60)  # below n_max = 64 of the modules that have one
LIMIT = 1e-5

# With inductor in the fast suite, one of each kind of graph: Σ, dense attention, random features, order by rank.
REPRESENTATIVE = {"sum_mixer-mean", "softmax", "favor", "separable_convolution"}
# The third Encoder stands for the other two in the fast suite.
SLOW = {"encoder-tokens", "encoder-pooled"}


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield
    torch._dynamo.reset()


def keep_of(n: int) -> Tensor:
    """Row 0 whole, of row 1 every third token away."""
    keep = torch.ones(2, n, dtype=torch.bool)
    keep[1, ::3] = False
    return keep


def value_and_gradients(case: Case, module, parameters, n: int, masked: bool) -> tuple[Tensor, ...]:
    x = tokens(n, torch.float32)
    mask = case.mask(keep_of(n)) if masked else {}
    for tensor in (x, *mask.values()):
        torch._dynamo.mark_dynamic(tensor, 1)
    x.requires_grad_(True)
    out = module(x, **mask)
    gradients = torch.autograd.grad(out.square().sum(), [x, *parameters], allow_unused=True)
    return (out.detach(), *(g for g in gradients if g is not None))


def check(case: Case, backend: str, masked: bool) -> None:
    module = case.make(torch.float32)
    parameters = list(module.parameters())
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
    for n in LENGTHS:
        got = value_and_gradients(case, compiled, parameters, n, masked)
        wanted = value_and_gradients(case, module, parameters, n, masked)
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            assert relative_error(g, w) <= LIMIT


@over_cases(case for case in CASES if case.name not in SLOW)
def test_one_graph_serves_all_lengths(case):
    check(case, "aot_eager", masked=True)


@over_cases(case for case in CASES if case.name in REPRESENTATIVE)
def test_with_inductor(case):
    check(case, "inductor", masked=True)


@pytest.mark.slow
@over_cases()
def test_one_graph_serves_all_lengths_without_mask(case):
    check(case, "aot_eager", masked=False)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@over_cases()
def test_every_module_with_inductor(case, masked):
    check(case, "inductor", masked)


def test_a_module_that_compiles_anew_for_each_length_is_found():
    class PerLength(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[1] % 2 else x * 3

    compiled = torch.compile(PerLength(), fullgraph=True, dynamic=True, backend="eager")
    compiled(tokens(9))
    with pytest.raises(torch._dynamo.exc.RecompileError):
        compiled(tokens(8))

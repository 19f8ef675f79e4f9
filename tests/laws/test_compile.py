"""torch.compile(fullgraph=True, dynamic=True): one graph, compiled once, serves every length, as eager computes it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from sumformer.testing import relative_error

from .modules import CASES, Case, over_cases, tokens

LENGTHS = (9, 5, 2, 33, 60)  # below n_max = 64 of the modules that have one
LIMIT = {torch.float32: 1e-5, torch.float64: 1e-12}

# With inductor in the fast suite, one of each kind of graph: Σ, dense attention, random features, order by rank.
REPRESENTATIVE = {"sum_mixer-mean", "softmax", "favor", "separable_convolution"}
# The third Encoder stands for the other two in the fast suite.
SLOW = {"encoder-tokens", "encoder-pooled"} | {c.name for c in CASES if c.name.startswith("sparse-")} - {
    "sparse-window"
}


# Causal order and packs: the same in small, every module among the slow tests.
ORDERED = {"sum_mixer-sum", "softmax", "favor", "average", "separable_convolution"}
PACKED = {"block-sum_mixer", "deep_sets", "softmax", "pooled_head-max"}


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


def padded(case: Case, n: int, dtype: torch.dtype, masked: bool) -> tuple[Tensor, dict[str, Any]]:
    """A batch of two, and its mask."""
    x, mask = tokens(n, dtype), case.mask(keep_of(n)) if masked else {}
    for tensor in (x, *mask.values()):
        torch._dynamo.mark_dynamic(tensor, 1)
    return x, dict(mask)


def packed(case: Case, n: int, dtype: torch.dtype) -> tuple[Tensor, dict[str, Any]]:
    """n + 2 sequences of 0 … 4 tokens."""
    lengths = torch.arange(n + 2) % 5
    x, cu_seqlens = tokens(int(lengths.sum()), dtype, batch=1), torch.zeros(n + 3, dtype=torch.int32)
    cu_seqlens[1:] = lengths.cumsum(0)
    torch._dynamo.mark_dynamic(x, 1)
    torch._dynamo.mark_dynamic(cu_seqlens, 0)
    return x, {"cu_seqlens": cu_seqlens, "max_seqlen": 4 + n % 3}


def value_and_gradients(module, parameters, x: Tensor, keywords: dict[str, Any]) -> tuple[Tensor, ...]:
    x.requires_grad_(True)
    out = module(x, **keywords)
    gradients = torch.autograd.grad(out.square().sum(), [x, *parameters], allow_unused=True)
    return (out.detach(), *(g for g in gradients if g is not None))


def compare(case: Case, backend: str, dtype: torch.dtype, inputs, **order) -> None:
    module = case.make(dtype)
    parameters = list(module.parameters())
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
    for n in LENGTHS:
        got, wanted = (
            value_and_gradients(f, parameters, x, keywords | order)
            for f, (x, keywords) in ((compiled, inputs(case, n, dtype)), (module, inputs(case, n, dtype)))
        )
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            assert relative_error(g, w) <= LIMIT[dtype]


def check(case: Case, backend: str, masked: bool) -> None:
    compare(case, backend, torch.float32, partial(padded, masked=masked))


def check_order(case: Case, inputs, **order) -> None:
    """In float64: compiled prefix sums are cut into other chunks than eager ones, and round otherwise."""
    compare(case, "aot_eager", torch.float64, inputs, **order)


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


@over_cases(case for case in CASES if case.causal and case.name in ORDERED)
def test_causal_order(case):
    check_order(case, partial(padded, masked=True), is_causal=True)


@over_cases(case for case in CASES if case.name in PACKED)
def test_a_pack(case):
    check_order(case, packed)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@over_cases(case for case in CASES if case.causal)
def test_causal_order_of_every_module(case, masked):
    check_order(case, partial(padded, masked=masked), is_causal=True)


@pytest.mark.slow
@over_cases()
def test_a_pack_of_every_module(case):
    check_order(case, packed)


@pytest.mark.slow
@over_cases(case for case in CASES if case.causal)
def test_a_pack_in_causal_order_of_every_module(case):
    check_order(case, packed, is_causal=True)


def test_a_module_that_compiles_anew_for_each_length_is_found():
    class PerLength(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[1] % 2 else x * 3

    compiled = torch.compile(PerLength(), fullgraph=True, dynamic=True, backend="eager")
    compiled(tokens(9))
    with pytest.raises(torch._dynamo.exc.RecompileError):
        compiled(tokens(8))

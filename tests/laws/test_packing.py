"""A pack of sequences is computed as each sequence alone: values and gradients, empty sequences, no loop over them."""

from __future__ import annotations

import math
import time

import pytest
import torch
from torch import nn

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.nn import LearnedPositions, Segments, SumMixer
from sumformer.nn.segments import segments_of
from sumformer.testing import relative_error

from .modules import CASES, D, over_cases, tokens
from .refusal import refused

LIMIT = {torch.float64: 1e-12, torch.float32: 1e-5}
LENGTHS = (3, 0, 1, 13, 0, 0, 5, 2, 0)  # more than one batch of similar lengths


def ends(lengths) -> torch.Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


CU = ends(LENGTHS)
TOTAL, LONGEST = sum(LENGTHS), max(LENGTHS)


def by_loop(case, module, x, lengths=LENGTHS, **order):
    """Each sequence through the module on its own; an empty one gives nothing, or a row of zeros."""
    rows = [module(part, **order) if part.shape[1] else None for part in x.split(list(lengths), dim=1)]
    if not case.invariant:
        return torch.cat([row for row in rows if row is not None], dim=1)
    width = next(row.shape[-1] for row in rows if row is not None)
    return torch.cat([x.new_zeros(1, width) if row is None else row for row in rows])


def packed(module, x, cu_seqlens=CU, max_seqlen=LONGEST, **order):
    return module(x, cu_seqlens=cu_seqlens, max_seqlen=max_seqlen, **order)


def check_as_by_loop(case, dtype, **order):
    module, x = case.make(dtype), tokens(TOTAL, dtype, batch=1).requires_grad_(True)
    wanted, got = by_loop(case, module, x, **order), packed(module, x, **order)
    assert relative_error(got, wanted) <= LIMIT[dtype]
    assert got.dtype == dtype
    generator = torch.Generator().manual_seed(0)
    upstream = torch.randn(wanted.shape, generator=generator, dtype=torch.float64).to(dtype)
    leaves = [x, *module.parameters()]
    for g, w in zip(*(torch.autograd.grad(y, leaves, upstream, allow_unused=True) for y in (got, wanted)), strict=True):
        assert (g is None) == (w is None)
        assert g is None or relative_error(g, w) <= LIMIT[dtype]


@pytest.mark.parametrize("dtype", list(LIMIT), ids=str)
@over_cases()
def test_packing_equals_looping(case, dtype):
    check_as_by_loop(case, dtype)


@pytest.mark.parametrize("dtype", list(LIMIT), ids=str)
@over_cases(case for case in CASES if case.causal)
def test_packing_equals_looping_in_causal_order(case, dtype):
    check_as_by_loop(case, dtype, is_causal=True)


@over_cases()
def test_a_bound_that_is_not_tight_changes_nothing(case):
    module, x = case.make(), tokens(TOTAL, batch=1)
    assert relative_error(packed(module, x, max_seqlen=LONGEST + 4), packed(module, x)) <= 1e-12


@over_cases()
def test_one_sequence_is_the_plain_call(case):
    module, x = case.make(), tokens(6, batch=1)
    assert relative_error(packed(module, x, ends([6]), 6), module(x)) <= 1e-12


@over_cases()
def test_one_sequence_does_not_reach_another(case):
    """Whatever it holds: NaN in one sequence leaves the others bit for bit, and their gradients are 0 there."""
    module, x = case.make(), tokens(TOTAL, batch=1)
    broken = x.clone()
    broken[:, 4:17] = math.nan  # the fourth
    wanted, got = packed(module, x), packed(module, broken)
    others = [s != 3 for s in range(len(LENGTHS))] if case.invariant else [not 4 <= t < 17 for t in range(TOTAL)]
    row = (lambda y: y[others]) if case.invariant else (lambda y: y[0, others])
    assert torch.equal(row(got), row(wanted))
    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad(row(packed(module, x)).square().sum(), x)
    assert (gradient[:, 4:17] == 0).all()


@over_cases()
def test_segments_made_once_serve_every_module(case):
    module, x = case.make(), tokens(TOTAL, batch=1)
    segments = segments_of("test", x, None, CU, LONGEST)
    assert isinstance(segments, Segments)
    assert torch.equal(module(x, cu_seqlens=segments), packed(module, x))


def test_no_loop_over_sequences():
    """10,000 sequences of about three tokens, empty ones among them."""
    lengths = torch.randint(0, 7, (10_000,), generator=torch.Generator().manual_seed(0)).tolist()
    mixer, x = SumMixer(D), tokens(sum(lengths), torch.float32, batch=1).requires_grad_(True)
    packed(mixer, x, ends(lengths), 6)
    start = time.perf_counter()
    out = packed(mixer, x, ends(lengths), 6)
    out.sum().backward()
    assert time.perf_counter() - start < 1
    first = next(s for s, n in enumerate(lengths) if n)
    assert relative_error(out[:, : lengths[first]], mixer(x[:, : lengths[first]])) <= 1e-5


def test_a_long_running_sum_keeps_float32():
    """65,536 summands and 20 in one pack: as close as the plain call's own sum."""
    x = torch.rand(1, 65_556, D, generator=torch.Generator().manual_seed(0))
    segments = segments_of("test", x, None, ends([65_536, 20]), None)
    wanted = torch.stack([x[0, :65_536].double().sum(0), x[0, 65_536:].double().sum(0)])
    assert relative_error(segments.sums(x), wanted) <= 1e-14


# ---- refusals


@over_cases()
def test_bad_packs_are_refused(case):
    module, x = case.make(), tokens(5, batch=1)
    cu = ends([2, 3])
    mask = case.mask(torch.ones(1, 5, dtype=torch.bool))
    refused(DtypeError, lambda: packed(module, x, cu.long(), 3), "int32", "int64")
    refused(DtypeError, lambda: packed(module, x, cu.tolist(), 3), "torch.Tensor", "list")
    refused(ShapeError, lambda: packed(module, x, cu.unsqueeze(0), 3), "(N + 1,)", "(1, 3)")
    refused(ShapeError, lambda: packed(module, x, cu[:1], 3), "N ≥ 1", "(1,)")
    refused(InputError, lambda: packed(module, x, cu + 1, 3), "a start at 1", "an end at 6")
    refused(InputError, lambda: packed(module, x, ends([4, -1, 2]), 4), "a decrease by 1")
    refused(InputError, lambda: packed(module, x, ends([2, 2]), 3), "total = 5", "an end at 4")
    refused(InputError, lambda: packed(module, x, cu, 2), "max_seqlen ≥ 3", "2")
    for bound in (0, -1, 3.0, True, "3"):
        refused(InputError, lambda bound=bound: packed(module, x, cu, bound), "max_seqlen", repr(bound))
    refused(InputError, lambda: packed(module, x, cu, 3, **mask), "either a mask or cu_seqlens", "both")
    refused(InputError, lambda: module(x, max_seqlen=3), "cu_seqlens beside max_seqlen")
    refused(ShapeError, lambda: packed(module, tokens(5), cu, 3), "(1, total", "(2, 5, 4)")
    refused(ShapeError, lambda: module(x[:, :4], cu_seqlens=segments_of("", x, None, cu, 3)), "5 tokens", "(1, 4, 4)")


@over_cases()
def test_a_module_that_pads_asks_for_the_bound(case):
    """The others do without."""
    module, x = case.make(), tokens(5, batch=1)
    try:
        got = module(x, cu_seqlens=ends([2, 3]))
    except InputError as error:
        assert "expected max_seqlen beside cu_seqlens, got None" in str(error)  # noqa: PT017
        assert case.pads
    else:
        assert not case.pads
        assert relative_error(got, packed(module, x, ends([2, 3]), 3)) <= 1e-12


def test_a_table_of_positions_has_an_end_in_each_sequence():
    positions, x = LearnedPositions(3, D), tokens(6, torch.float32, batch=1)
    assert torch.equal(packed(positions, x, ends([3, 3]), 5), x + positions.table.repeat(2, 1))
    refused(ShapeError, lambda: packed(positions, x, ends([2, 4]), 4), "n_max = 3", "4 in a batch of (1, 6, 4)")


class OwnAttention(nn.Module):
    """A user's layer, which knows cu_seqlens as a tensor."""

    def forward(self, x, key_padding_mask=None, cu_seqlens=None, max_seqlen=None):
        assert cu_seqlens is None or isinstance(cu_seqlens, torch.Tensor)
        return 2 * x


def test_a_users_layer_gets_what_was_given():
    from sumformer.nn import Block, FeedForward

    block, x = Block(OwnAttention(), FeedForward(D, 8)).double(), tokens(5, batch=1)
    assert relative_error(packed(block, x, ends([2, 3]), 3), block(x)) <= 1e-14

"""A constructed Sumformer on packs, in causal order and as a stream: what it computes on each sequence, each prefix."""

from __future__ import annotations

import math

import pytest
import torch

import sumformer
from sumformer.errors import InputError, ShapeError
from sumformer.testing import TOLERANCE, relative_error

SOFTMAX = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"
LENGTHS = (3, 0, 2, 7, 0, 0, 5, 2, 0)
CU = torch.tensor([0, *LENGTHS], dtype=torch.int32).cumsum(0, dtype=torch.int32)
TOTAL, LONGEST = sum(LENGTHS), max(LENGTHS)


@pytest.fixture(scope="module", params=[(SOFTMAX, 2, "float64"), ("x*mean_others(sigmoid(x-y))", 1, "mixed")], ids=str)
def network(request):
    source, d, dtype = request.param
    return sumformer.construct(source, 1e-2, d=d, dtype=dtype).network.requires_grad_(True)


def tokens(network, n, batch=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, n, network.d, generator=generator, dtype=torch.float64).to(network.outside)


def gradients(network, x, out):
    leaves = [x, *network.coefficients]
    return torch.autograd.grad(out.square().sum(), leaves)


def agree(network, x, got, wanted):
    limit = TOLERANCE[network.outside]
    assert relative_error(got, wanted) <= limit
    for g, w in zip(gradients(network, x, got), gradients(network, x, wanted), strict=True):
        assert relative_error(g, w) <= limit


@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
def test_packing_equals_looping(network, is_causal):
    x = tokens(network, TOTAL).requires_grad_(True)
    # One token alone has no others: the formula is undefined there, and so are the gradients that would meet it.
    first = 1 if is_causal and "others" in network.expression else 0
    parts = [network(part, is_causal=is_causal)[:, first:] for part in x.split(list(LENGTHS), 1) if part.shape[1]]
    got = network(x, cu_seqlens=CU, max_seqlen=LONGEST + 3, is_causal=is_causal)
    if first:
        kept = [t for t in range(TOTAL) if t not in CU.tolist()]
        assert relative_error(got[:, kept], torch.cat(parts, 1)) <= TOLERANCE[network.outside]
    else:
        agree(network, x, got, torch.cat(parts, 1))


@torch.no_grad()
def test_one_sequence_does_not_reach_another(network):
    x = tokens(network, TOTAL)
    broken = x.clone()
    broken[:, 5:12] = math.nan
    wanted, got = (network(y, cu_seqlens=CU, max_seqlen=LONGEST) for y in (x, broken))
    others = [t for t in range(TOTAL) if not 5 <= t < 12]
    assert torch.equal(got[:, others], wanted[:, others])


def test_each_causal_output_is_the_last_of_its_prefix():
    network = sumformer.construct(SOFTMAX, 1e-2, d=2, dtype="float64").network.requires_grad_(True)
    x = tokens(network, 9, batch=2).requires_grad_(True)
    agree(network, x, network(x, is_causal=True), torch.cat([network(x[:, : i + 1])[:, -1:] for i in range(9)], 1))


@torch.no_grad()
def test_later_tokens_change_nothing(network):
    x = tokens(network, 12)
    wanted = network(x, is_causal=True)
    broken = x.clone()
    broken[:, 5:] = math.nan
    assert relative_error(network(broken, is_causal=True)[:, 1:5], wanted[:, 1:5]) == 0


def test_a_mask_in_causal_order(network):
    x = tokens(network, 10, batch=2)
    keep = torch.ones(2, 10, dtype=torch.bool)
    keep[1, ::3] = False
    got = network(x, attention_mask=keep.long(), is_causal=True)
    wanted = network(x[1:, keep[1]], is_causal=True)
    assert relative_error(got[1:, keep[1]][:, 1:], wanted[:, 1:]) <= TOLERANCE[network.outside]
    assert (got[1, ~keep[1]] == 0).all()


def test_a_row_of_padding_gives_zeros_and_finite_gradients(network):
    x = tokens(network, 6, batch=2).requires_grad_(True)
    keep = torch.ones(2, 6, dtype=torch.long)
    keep[1] = 0
    out = network(x, attention_mask=keep)
    assert (out[1] == 0).all()
    assert all(gradient.isfinite().all() for gradient in gradients(network, x, out))


@torch.no_grad()
@pytest.mark.parametrize("sizes", [(12,), (1,) * 12, (5, 1, 6)], ids=str)
def test_a_stream_in_pieces_is_the_full_pass(network, sizes, monkeypatch):
    monkeypatch.setattr("sumformer.nn.expression_readings.PREFIX_ELEMENTS", 4 * network.latent_dimension)
    x, state, outs = tokens(network, 12, batch=2), None, []
    for piece in x.split(list(sizes), 1):
        out, state = network.stream(piece, state)
        outs.append(out)
    wanted = network(x, is_causal=True)
    assert relative_error(torch.cat(outs, 1)[:, 1:], wanted[:, 1:]) <= TOLERANCE[network.outside]
    assert state.count.tolist() == [12.0, 12.0]
    assert relative_error(state.total, network.summarise(x).total) <= TOLERANCE[network.inside]


def test_bad_packs_are_refused(network):
    x = tokens(network, TOTAL)
    with pytest.raises(InputError, match="expected max_seqlen beside cu_seqlens"):
        network(x, cu_seqlens=CU)
    with pytest.raises(InputError, match="either a mask or cu_seqlens"):
        network(x, attention_mask=torch.ones(1, TOTAL, dtype=torch.long), cu_seqlens=CU, max_seqlen=LONGEST)
    with pytest.raises(ShapeError, match=r"stream: expected"):
        network.stream(x[0])

"""Causal order: output i is that of the prefix x_1 … x_i, whatever comes later; a stream in pieces gives the same."""

from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import InputError, NotSupportedError, ShapeError
from sumformer.nn import FavorAttention, PerformerAttention, SumMixer
from sumformer.nn.prefix_attention import CHUNK
from sumformer.testing import padding_error, relative_error

from .modules import CASES, N_MAX, D, over_cases, tokens

LIMIT = {torch.float64: 1e-12, torch.float32: 1e-5}
CAUSAL = [case for case in CASES if case.causal]
# A deep network applies causal layers one after another, which is not one layer on each prefix.
SINGLE = [case for case in CAUSAL if "encoder" not in case.name]
over_dtypes = pytest.mark.parametrize("dtype", list(LIMIT), ids=str)


def gradients(out, module, x, upstream):
    found = torch.autograd.grad(out, [x, *module.parameters()], upstream, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, [x, *module.parameters()], strict=True)]


@over_dtypes
@over_cases(SINGLE)
def test_each_output_is_the_last_of_its_prefix(case, dtype):
    module, x = case.make(dtype), tokens(9, dtype).requires_grad_(True)
    wanted = torch.cat([module(x[:, : i + 1])[:, -1:] for i in range(9)], dim=1)
    got = module(x, is_causal=True)
    assert relative_error(got, wanted) <= LIMIT[dtype]
    generator = torch.Generator().manual_seed(0)
    upstream = torch.randn(wanted.shape, generator=generator, dtype=torch.float64).to(dtype)
    for g, w in zip(*(gradients(y, module, x, upstream) for y in (got, wanted)), strict=True):
        assert relative_error(g, w) <= LIMIT[dtype]


@pytest.mark.parametrize("fill", [math.nan, math.inf, 1e4, 0.0], ids=str)
@over_cases(CAUSAL)
def test_later_tokens_change_nothing(case, fill):
    module, x = case.make(), tokens(12)
    wanted = module(x, is_causal=True)
    for cut in (1, 4, 11):
        changed = x.clone()
        changed[:, cut:] = fill
        got = module(changed, is_causal=True)
        assert relative_error(got[:, :cut], wanted[:, :cut]) <= 1e-14
        assert math.isfinite(fill) or not got[:, cut:].isfinite().any() or "conv" in case.name


@over_cases(CAUSAL)
def test_earlier_outputs_have_no_gradient_at_later_tokens(case):
    module, x = case.make(), tokens(12).requires_grad_(True)
    out = module(x, is_causal=True)
    for cut in (1, 4, 11):
        (gradient,) = torch.autograd.grad(out[:, :cut].square().sum(), x, retain_graph=True)
        assert (gradient[:, cut:] == 0).all()


@over_cases(CAUSAL)
def test_the_last_output_sees_every_token(case):
    """Causal, and not merely blind: the last token's output depends on the first, where modules look at others."""
    module, x = case.make(), tokens(2).requires_grad_(True)
    (gradient,) = torch.autograd.grad(module(x, is_causal=True)[:, -1].square().sum(), x)
    assert bool((gradient[:, 0] != 0).any()) == case.mixes


class InCausalOrder(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module


class CausalLayer(InCausalOrder):
    def forward(self, x, key_padding_mask=None):
        return self.module(x, key_padding_mask=key_padding_mask, is_causal=True)


class CausalModel(InCausalOrder):
    def forward(self, x, attention_mask=None):
        return self.module(x, attention_mask=attention_mask, is_causal=True)


@pytest.mark.parametrize("interleave", [False, True], ids=["appended", "interleaved"])
@over_dtypes
@over_cases(CAUSAL)
def test_padding_stays_out_of_sight(case, dtype, interleave):
    module = (CausalModel if case.model else CausalLayer)(case.make(dtype))
    error = padding_error(module, tokens(5, dtype), (0, 7, 100), interleave=interleave)
    assert max(error.output, error.gradient) <= LIMIT[dtype]
    assert error.leak == 0


@over_cases(CAUSAL)
def test_a_row_of_padding_alone_gives_zeros(case):
    module, keep = case.make(), torch.zeros(2, 5, dtype=torch.bool)
    nothing = torch.full((2, 5, D), math.nan, dtype=torch.float64, requires_grad=True)
    out = module(nothing, **case.mask(keep), is_causal=True)
    assert (out == 0).all()
    (gradient,) = torch.autograd.grad(out.sum(), nothing)
    assert (gradient == 0).all()


@pytest.mark.parametrize("sizes", [(12,), (1,) * 12, (5, 1, 6), (11, 1), (3, 3, 3, 3)], ids=str)
@over_dtypes
@over_cases(CAUSAL)
def test_a_stream_in_pieces_is_the_full_pass(case, dtype, sizes):
    module, x = case.make(dtype), tokens(12, dtype).requires_grad_(True)
    wanted, state, pieces = module(x, is_causal=True), None, []
    for piece in x.split(list(sizes), dim=1):
        out, state = module.stream(piece, state)
        pieces.append(out)
    got = torch.cat(pieces, dim=1)
    assert got.dtype == dtype
    assert relative_error(got, wanted) <= LIMIT[dtype]
    upstream = torch.ones_like(wanted)
    for g, w in zip(*(gradients(y, module, x, upstream) for y in (got, wanted)), strict=True):
        assert relative_error(g, w) <= LIMIT[dtype]


@pytest.mark.parametrize("seed", range(3))
@over_cases(CAUSAL)
def test_random_pieces_of_a_longer_stream(case, seed):
    """Across the blocks, windows and chunks of every module, nothing later changes what was said."""
    generator = torch.Generator().manual_seed(seed)
    module, x = case.make(), tokens(N_MAX, batch=2, seed=seed)
    cuts = torch.randperm(N_MAX - 1, generator=generator)[: int(torch.randint(1, 12, (), generator=generator))] + 1
    state, pieces = None, []
    with torch.no_grad():
        for piece in x.tensor_split(cuts.sort().values.tolist(), dim=1):
            out, state = module.stream(piece, state)
            pieces.append(out)
        assert relative_error(torch.cat(pieces, dim=1), module(x, is_causal=True)) <= 1e-12


@over_cases(CAUSAL)
def test_what_is_not_finite_in_a_stream_stays(case):
    """As in the full pass: from its place on, and not before."""
    module, x = case.make(), tokens(12)
    x[:, 5] = math.nan
    wanted, state, pieces = module(x, is_causal=True), None, []
    for piece in x.split([4, 3, 5], dim=1):
        out, state = module.stream(piece, state)
        pieces.append(out)
    got = torch.cat(pieces, dim=1)
    assert torch.equal(got.isnan(), wanted.isnan())
    assert relative_error(got[~got.isnan()], wanted[~wanted.isnan()]) <= 1e-12


@over_cases(CAUSAL)
def test_a_stream_checks_its_input(case):
    module = case.make()
    for shape in ((5, D), (2, 0, D)):
        with pytest.raises(ShapeError, match=rf"{type(module).__name__}.stream: expected"):
            module.stream(torch.zeros(shape, dtype=torch.float64))


@over_cases(CAUSAL)
def test_a_stream_refuses_a_state_that_is_not_its_own(case):
    module, x = case.make(), tokens(3)
    _, state = module.stream(x)
    if state is not None:
        with pytest.raises(
            InputError, match=r"stream: expected (as state the \w+ that its last call|the state of its)"
        ):
            module.stream(x, [state])


@over_cases(CAUSAL)
def test_a_stream_refuses_a_state_of_other_sequences(case):
    module = case.make()
    _, state = module.stream(tokens(3, batch=2))
    if any(isinstance(v, torch.Tensor) for v in getattr(state, "__dict__", {}).values()):
        with pytest.raises(ShapeError, match="of the 2 sequences that its state is of"):
            module.stream(tokens(3, batch=3), state)


@over_cases(CAUSAL)
def test_a_state_keeps_nothing_else_alive(case):
    module = case.make()
    with torch.no_grad():
        _, state = module.stream(tokens(60, batch=2))
    for value in getattr(state, "__dict__", {}).values():
        if isinstance(value, torch.Tensor):
            assert value.untyped_storage().nbytes() == value.numel() * value.element_size()


@over_cases(case for case in CASES if not case.causal)
def test_what_has_no_causal_order_says_why(case):
    module, x = case.make(), tokens(5, batch=1)
    for order in ({}, case.mask(torch.ones(1, 5, dtype=torch.bool))):
        with pytest.raises(NotSupportedError, match=r"no causal order, (E and F|W_P|it pools)"):
            module(x, is_causal=True, **order)
    with pytest.raises(NotSupportedError, match="no causal order"):
        module(x, is_causal=True, cu_seqlens=torch.tensor([0, 5], dtype=torch.int32), max_seqlen=5)
    instead = "have a stream|take a TokenHead|can be added to"
    with pytest.raises(NotSupportedError, match=rf"stream: (no causal order, |it pools).*({instead})"):
        module.stream(x)


# ---- prefix sums of random features, across chunks


@pytest.mark.parametrize("cls", [FavorAttention, PerformerAttention])
@pytest.mark.parametrize("n", [CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 3])
def test_features_across_chunks(cls, n):
    torch.manual_seed(0)
    layer, x = cls(D, k=8, nhead=2).double(), tokens(n, batch=1).requires_grad_(True)
    places = [0, 1, n // 2, n - 2, n - 1]
    wanted = torch.cat([layer(x[:, : i + 1])[:, -1:] for i in places], dim=1)
    got = layer(x, is_causal=True)[:, places]
    assert relative_error(got, wanted) <= 1e-12
    upstream = torch.ones_like(wanted)
    for g, w in zip(*(gradients(y, layer, x, upstream) for y in (got, wanted)), strict=True):
        assert relative_error(g, w) <= 1e-12


def test_features_whose_logarithms_run_away():
    """Keys that grow and shrink by e^{±thousands}: the normaliser of every prefix is ≥ 1, in float32 too."""
    torch.manual_seed(0)
    layer, wide = FavorAttention(D, k=8), FavorAttention(D, k=8).double()
    wide.load_state_dict(layer.state_dict())
    x = (40 * tokens(200, batch=1)).requires_grad_(True)
    wanted = torch.cat([wide(x[:, : i + 1])[:, -1:] for i in range(0, 200, 7)], dim=1)
    assert relative_error(wide(x, is_causal=True)[:, ::7], wanted) <= 1e-11
    narrow = x.detach().float().requires_grad_(True)
    out = layer(narrow, is_causal=True)
    assert out.isfinite().all()
    (gradient,) = torch.autograd.grad(out.sum(), narrow)
    assert gradient.isfinite().all()


def test_prefix_sums_run_in_float32():
    """In bfloat16 a sum past 256 would no longer grow by ones."""
    mixer = SumMixer(D, mean=False).to(torch.bfloat16)
    _, state = mixer.stream(tokens(1000, torch.bfloat16, batch=1))
    features = mixer.features(tokens(1000, torch.bfloat16, batch=1))
    assert state.total.dtype == torch.float32
    assert relative_error(state.total, features.double().sum(1)) <= 1e-5
    assert state.count.item() == 1000

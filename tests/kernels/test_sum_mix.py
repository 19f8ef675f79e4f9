"""The operator against the layer's definition: values, gradients, masks, packs, pieces; on a CPU, so by the twins."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sumformer.errors import DtypeError
from sumformer.kernels import mix
from sumformer.kernels.activations import NAMES, slope, value
from sumformer.kernels.layout import Layout
from sumformer.kernels.sum_mix import sum_mix
from sumformer.nn import SumMixer, sum_mixer
from sumformer.testing import relative_error

D, LATENT = 16, 24
CU = torch.tensor([0, 7, 7, 40, 50], dtype=torch.int32)


def layer(activation: str = "gelu", **keywords) -> SumMixer:
    torch.manual_seed(0)
    return SumMixer(D, LATENT, activation=activation, **keywords).double()


def weights(net: SumMixer) -> list[Tensor]:
    return [
        *(net.phi.weight, net.phi.bias, net.from_token.weight, net.from_token.bias),
        *(net.from_sum.weight, net.out.weight, net.out.bias),
    ]


def tokens(batch: int = 2, n: int = 21) -> Tensor:
    return torch.randn(batch, n, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def gradients(y: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    direction = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=y.dtype)
    return torch.autograd.grad((y * direction).sum(), leaves)


def assert_same(net: SumMixer, operator: SumMixer, x: Tensor, **keywords) -> None:
    x = x.requires_grad_()
    wanted, got = net(x, **keywords), operator(x, **keywords)
    assert relative_error(got, wanted) <= 1e-13
    for g, w in zip(gradients(got, [x, *weights(operator)]), gradients(wanted, [x, *weights(net)]), strict=True):
        assert relative_error(g, w) <= 1e-12


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("mean", [False, True])
def test_the_operator_is_the_layer(activation, mean):
    assert_same(layer(activation, mean=mean), layer(activation, mean=mean, recompute=True), tokens())


@pytest.mark.parametrize("piece", [8, 21, 30, 1000])
def test_pieces_do_not_show(piece, monkeypatch):
    """Longer than a sequence, shorter than one, whole."""
    monkeypatch.setattr(mix, "PIECE", piece)
    mask = torch.rand(3, 21, generator=torch.Generator().manual_seed(3)) > 0.7
    assert_same(layer(), layer(recompute=True), tokens(3), key_padding_mask=mask)


def test_padding_may_hold_nan():
    x, mask = tokens(), torch.zeros(2, 21, dtype=torch.bool)
    mask[0, 5:] = True
    x[0, 5:] = float("nan")
    assert_same(layer(), layer(recompute=True), x, key_padding_mask=mask)


def test_a_pack_with_an_empty_sequence():
    assert_same(layer(), layer(recompute=True), tokens(1, 50), cu_seqlens=CU, max_seqlen=33)


def test_the_layer_calls_what_the_operator_runs():
    net, x = layer(recompute=True), tokens().requires_grad_()
    arguments = (*weights(net), None, None, "gelu", True, True, True)
    wanted = sum_mix(x, *arguments)[0]
    with torch.no_grad():
        assert torch.equal(net(x), wanted)
    y = net(x)
    assert torch.equal(y, wanted)
    for g, w in zip(gradients(y, [x, *weights(net)]), gradients(wanted, [x, *weights(net)]), strict=True):
        assert torch.equal(g, w)
    (once,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.autograd.grad(once.sum(), x)


class Twice(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


class Other(Tensor):
    """A subclass, which may do anything when it is used."""


def changed(net: SumMixer, how: str) -> SumMixer:
    """Something about its parts is not as it was made."""
    torch.manual_seed(1)
    if how == "hook":
        net.phi.register_forward_hook(lambda *_: _[2] * 2)
    elif how == "hook of σ":
        net.sigma.register_forward_hook(lambda *_: _[2] * 2)
    elif how == "forward":
        net.out.forward = lambda x: 2 * x
    elif how == "subclass":
        net.out.weight = torch.nn.Parameter(net.out.weight.detach().as_subclass(Other))
    else:
        part, module = {
            "bias of W_s": ("from_sum", torch.nn.Linear(LATENT, D).double()),
            "no bias": ("phi", torch.nn.Linear(D, LATENT, bias=False).double()),
            "σ": ("sigma", torch.nn.ReLU()),
            "approximate": ("sigma", torch.nn.GELU("tanh")),
            "identity": ("drop", torch.nn.Identity()),
            "drop": ("drop", Twice()),
            "no module": ("drop", None),
            "latent": ("from_sum", torch.nn.Linear(LATENT + 1, D, bias=False).double()),
        }[how]
        if module is None:
            del net.drop
            net.drop = lambda x: 2 * x
        else:
            setattr(net, part, module)
    return net


CHANGES = [
    "hook",
    "hook of σ",
    "forward",
    "subclass",
    "bias of W_s",
    "no bias",
    "σ",
    "approximate",
    "identity",
    "drop",
    "no module",
]


@pytest.mark.parametrize("how", CHANGES)
def test_a_layer_whose_parts_were_changed_does_what_they_do(how, monkeypatch):
    x = tokens()
    wanted = changed(layer(), how)(x)
    if how != "identity":
        monkeypatch.setattr(sum_mixer, "mixed", lambda *_: pytest.fail("the operator was called"))
    assert relative_error(changed(layer(recompute=True), how)(x), wanted) <= 1e-13


@pytest.mark.parametrize("recompute", [False, True])
def test_what_comes_out_may_be_changed_in_place(recompute):
    net, x = layer(recompute=recompute), tokens().requires_grad_()
    y = net(x)
    y += 1
    (wanted,) = torch.autograd.grad((layer()(x) + 1).square().sum(), x)
    assert relative_error(torch.autograd.grad(y.square().sum(), x)[0], wanted) <= 1e-12


def test_forward_mode_of_a_compiled_layer_is_not_0():
    x = tokens()

    def tangent(net):
        return torch.func.jvp(net, (x,), (x,))[1]

    wanted = tangent(layer())
    assert wanted.abs().max() > 0.1
    net = layer(recompute=True)
    assert relative_error(tangent(net), wanted) <= 1e-12
    assert relative_error(torch.compile(lambda: tangent(net), backend="eager")(), wanted) <= 1e-12


def test_a_layer_of_another_dtype_than_its_tokens_is_refused_as_its_parts_would():
    for recompute in (False, True):
        with pytest.raises(DtypeError, match="convert the tokens"):
            layer(recompute=recompute)(tokens().float())


def test_a_layer_without_numbers():
    net = layer(recompute=True).to("meta")
    assert net(tokens().to("meta")).shape == (2, 21, D)


def test_hooks_of_all_modules_are_called():
    with torch.nn.modules.module.register_module_forward_hook(lambda module, _, y: y + 1):
        assert relative_error(layer(recompute=True)(tokens()), layer()(tokens())) <= 1e-13


def test_sizes_and_dtypes_that_do_not_fit_are_named():
    net = layer(recompute=True)
    with pytest.raises(RuntimeError, match=r"tokens of width 16, .* do not fit: .*\(16, 25\)"):
        changed(net, "latent")(tokens())
    parts = weights(layer())
    with pytest.raises(RuntimeError, match=r"float64 on cpu, a weight torch\.float32"):
        sum_mix(tokens(), *parts[:3], parts[3].float(), *parts[4:], None, None, "gelu", True, False, False)
    with pytest.raises(RuntimeError, match=r"do not fit: .*\(16,\)"):
        sum_mix(tokens(), *parts[:5], parts[5][0], parts[6], None, None, "gelu", True, False, False)
    with pytest.raises(RuntimeError, match="got 'elu'"):
        sum_mix(tokens(), *parts, None, None, "elu", True, False, False)
    with pytest.raises(RuntimeError, match=r"keep \(batch, n\), got \(2, 21, 16\) and \(21, 2\)"):
        sum_mix(tokens(), *parts, torch.ones(21, 2, dtype=torch.bool), None, "gelu", True, False, False)


def test_without_recompute_the_kept_values_are_used():
    net, x = layer(), tokens().requires_grad_()
    y, total, _, g, h = sum_mix(x, *weights(net), None, None, "gelu", True, True, False)
    assert g.shape == h.shape == (42, D)
    assert total.dtype == torch.float64
    wanted = net(x)
    for g, w in zip(gradients(y, [x, *weights(net)]), gradients(wanted, [x, *weights(net)]), strict=True):
        assert relative_error(g, w) <= 1e-12
    assert sum_mix(x, *weights(net), None, None, "gelu", True, False, False)[3].shape == (0, D)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_opcheck(recompute, packed):
    x = (tokens(1, 50) if packed else tokens()).requires_grad_()
    arguments = (None, CU, "gelu", True, True, recompute) if packed else (None, None, "gelu", True, True, recompute)
    torch.library.opcheck(sum_mix, (x, *(w.detach().requires_grad_() for w in weights(layer())), *arguments))


def test_one_graph_serves_every_length():
    net = layer(recompute=True)
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (9, 30, 5):
            x = tokens(2, n)
            torch._dynamo.mark_dynamic(x, 1)
            assert relative_error(compiled(x), net(x)) <= 1e-14
    torch._dynamo.reset()


def test_autocast_runs_in_its_dtype():
    net = SumMixer(D, recompute=True)
    x = tokens().float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net(x)
    assert y.dtype == torch.bfloat16
    assert relative_error(y.float(), net(x)) <= 2e-2
    y.float().sum().backward()
    assert x.grad.dtype == torch.float32
    assert net.phi.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("name", NAMES)
def test_slopes(name):
    z = torch.linspace(-6, 6, 101, dtype=torch.float64).requires_grad_()
    (wanted,) = torch.autograd.grad(value(name, z).sum(), z)
    assert relative_error(slope(name, z), wanted) <= 1e-14


@pytest.mark.parametrize("tile", [4, 16])
def test_tiles_cover_a_pack_once(tile):
    layout = Layout(4, 0, 50, CU)
    table, ends = layout.tile_table(tile)
    seen = []
    for i, (first, end, sequence) in enumerate(table.tolist()):
        rows = list(range(first, min(first + tile, end)))
        seen += rows
        assert all(CU[sequence] <= r < CU[sequence + 1] for r in rows)
        assert not rows or ends[sequence] <= i < ends[sequence + 1]
    assert sorted(seen) == list(range(50))


@pytest.mark.parametrize(("sequences", "length", "most"), [(1, 100, 30), (3, 100, 30), (7, 5, 12), (2, 6, 100)])
def test_pieces_cover_the_rows_once(sequences, length, most):
    pieces = Layout(sequences, length, sequences * length).pieces(most)
    rows = [r for place, _, _ in pieces for r in range(place.start, place.stop)]
    assert rows == list(range(sequences * length))
    for place, part, layout in pieces:
        assert layout.rows == place.stop - place.start <= most
        assert part.start == place.start // length
        assert layout.sequences == part.stop - part.start

"""A pack of sequences through every kind of constructed network, and what the certificate asks of each sequence."""

from __future__ import annotations

import pytest
import torch

import sumformer
from sumformer.errors import InputError, OutsideBoxError, SumformerError
from sumformer.nn.segments import segments_of

SOFT = "sum(exp(-(x-y)**2)*y)/sum(exp(-(x-y)**2))"


def double_mean(X):
    return 2 * X.mean(1, keepdim=True).expand_as(X)


# name: arguments of construct, and lengths that it allows
NETWORKS = {
    "sums": ((SOFT, 1e-3, {"d": 1}), (3, 1, 40, 2)),
    "exact": (("x + 3*x*sum_others(y)**3", 1e-6, {"d": 2, "n": 3}), (3, 3, 3)),
    "symmetric": (("x*mean(y**2)", 1e-3, {"d": 1, "n": 3, "route": "symmetric"}), (3, 3)),
    "grid": (("max(y)", 0.3, {"d": 1, "n": "1..3", "route": "grid", "options": {"code": "lanes"}}), (3, 1, 2, 3)),
    "positions": (("sum(max(0, min(1, i-j+1))*y)/i", 0.3, {"d": 1, "n": 3, "positions": True}), (3, 3)),
    "transformer": (("x*mean(y)", 1e-2, {"d": 1, "n": "..50", "architecture": "transformer"}), (5, 1, 30, 2)),
    "linformer": (("x*mean(y)", 1e-2, {"d": 1, "n": 4, "architecture": "linformer"}), (4, 4, 4)),
    "performer": (("x*mean(y)", 1e-2, {"d": 1, "n": 4, "architecture": "performer"}), (4, 4, 4)),
    "look-up": (("x*mean(y)", 0.5, {"d": 1, "n": 2, "architecture": "transformer", "route": "grid"}), (2, 2, 2)),
    "deep": (("x*mean(y)", 0.5, {"d": 1, "n": 2, "architecture": "deep-transformer"}), (2, 2, 2)),
}


def built(name):
    if name == "opaque":
        f = sumformer.target(double_mean, n=2, d=1, lipschitz=2.0)
        return sumformer.construct(f, 0.3), (2, 2, 2)
    (source, epsilon, domain), lengths = NETWORKS[name]
    return sumformer.construct(source, epsilon, **domain), lengths


def ends(lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def tokens(c, lengths):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(1, sum(lengths), c.target.input_box.d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("name", [*NETWORKS, "opaque"])
def test_a_pack_is_each_sequence_alone(name):
    c, lengths = built(name)
    x, cu_seqlens = tokens(c, lengths), ends(lengths)
    wanted = torch.cat([c(part) for part in x.split(list(lengths), dim=1)], dim=1)
    for got in (
        c.network(x, cu_seqlens=cu_seqlens, max_seqlen=max(lengths)),
        c(x, cu_seqlens=cu_seqlens),
        c(x, cu_seqlens=cu_seqlens, max_seqlen=max(lengths) + 1),
        c(x, cu_seqlens=segments_of("test", x, None, cu_seqlens, None)),
    ):
        assert got.shape == wanted.shape
        assert float((got - wanted).abs().max()) <= 1e-12


@pytest.mark.parametrize("name", ["look-up", "deep", "opaque", "symmetric", "transformer"])
def test_every_sequence_must_have_an_allowed_number_of_tokens(name):
    c, lengths = built(name)
    for wrong in ((*lengths[:-1], 0), (*lengths, 51)):
        with pytest.raises(InputError, match=r"certified for .*, got n = "):
            c(tokens(c, wrong), cu_seqlens=ends(wrong))


@pytest.mark.parametrize("name", ["look-up", "deep"])
def test_a_table_for_n_tokens_refuses_sequences_of_others(name):
    c, _ = built(name)
    for wrong in ((3, 1), (2, 1, 2), (3, 3)):
        with pytest.raises(SumformerError, match=r"exactly (n = )?2 tokens|expected n = 2 tokens"):
            c.network(tokens(c, wrong), cu_seqlens=ends(wrong), max_seqlen=3)


def test_gradients_of_a_pack_are_those_of_each_sequence():
    c, lengths = built("transformer")
    c.network.requires_grad_(True)
    x, leaves = tokens(c, lengths).requires_grad_(True), list(c.network.parameters())
    got = c.network(x, cu_seqlens=ends(lengths), max_seqlen=30)
    wanted = torch.cat([c.network(part) for part in x.split(list(lengths), dim=1)], dim=1)
    pairs = (torch.autograd.grad(y.square().sum(), [x, *leaves], allow_unused=True) for y in (got, wanted))
    for g, w in zip(*pairs, strict=True):
        assert (g is None) == (w is None)
        assert g is None or float((g - w).abs().max()) <= 1e-9 * float(w.abs().max() + 1)


def test_what_a_pack_cannot_be():
    c, lengths = built("sums")
    x, cu_seqlens = tokens(c, lengths), ends(lengths)
    with pytest.raises(InputError, match="either cu_seqlens or sources and weights"):
        c(x, cu_seqlens=cu_seqlens, weights=torch.ones(1, x.shape[1]))
    with pytest.raises(InputError, match="either a mask or cu_seqlens"):
        c(x, cu_seqlens=cu_seqlens, attention_mask=torch.ones(1, x.shape[1], dtype=torch.long))
    with pytest.raises(InputError, match="an end at 46"):
        c(x[:, :-1], cu_seqlens=cu_seqlens)
    outside = x.clone()
    outside[0, 7] = 1.5
    with pytest.raises(OutsideBoxError) as error:
        c(outside, cu_seqlens=cu_seqlens)
    assert error.value.index[:2] == (0, 7)

"""A 4.3–4.5: the compiled networks keep their certificates, are what the theorems speak of, and say what they are."""

from __future__ import annotations

import json

import pytest
import torch
from tests.theorems.alberti_2023.random_targets import random_case

from sumformer.certificates.attack import attack, violation
from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.nn import CompiledTransformer, LinformerAttention, SoftmaxAttention, SparseFeedForward
from sumformer.targets import from_gallery, target
from sumformer.theorems.alberti_2023.faithfulness import faithfulness
from sumformer.theorems.alberti_2023.theorem_4_3 import mean_head
from sumformer.theorems.alberti_2023.theorem_4_5 import mean_head as favor_head
from sumformer.theorems.alberti_2023.theorem_4_5 import sum_head
from sumformer.theorems.construction import construct, load

ARCHITECTURES = ("transformer", "linformer", "performer")
GAUSS = "sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))"


def tokens(f, n, batch=64, seed=0):
    unit = torch.rand(batch, n, f.d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    low = torch.tensor([float(a) for a in f.box.lower], dtype=torch.float64)
    return low + torch.tensor([float(2 * r) for r in f.box.radius], dtype=torch.float64) * unit


def holds(made, n, **attack_options):
    """Forward and attack stay below the certificate; the two ways to evaluate agree."""
    f, total = made.target, made.certificate.total
    assert total <= made.certificate.epsilon
    X = tokens(f, n)
    got = made.network(X)
    assert (got - f(X)).abs().max() <= total
    apart = made.network.apply(X, made.network.summarise(X))
    assert torch.allclose(got, apart, atol=1e-11)
    found = attack(f, made.network, effort="quick", **attack_options)
    assert found.worst <= total or not violation(found, total)[0]
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("prefer", ["parameters", "depth", "width"])
def test_every_architecture_and_preference(architecture, prefer):
    made = construct(
        "x + 7*x**2 + 3*x*sum_others(y)**3", 1e-2, n=3, architecture=architecture, options={"prefer": prefer}
    )
    holds(made, 3, seconds=1.0)
    counted = faithfulness(made.network)
    assert counted.faithful
    assert counted.attention_layers == 1
    assert made.certificate.architecture == architecture
    if prefer == "depth":
        assert counted.feed_forward_layers <= 5


@pytest.mark.parametrize("seed", range(50))
def test_random_targets_resist_the_attack(seed):
    f, epsilon, architecture, prefer = random_case(seed)
    try:
        made = construct(f, epsilon, architecture=architecture, options={"prefer": prefer})
    except (RefusedError, DomainError):
        return  # `test_most_random_targets_are_built` counts these
    holds(made, f.tokens.minimum, seconds=0.4, seed=seed)


def test_most_random_targets_are_built():
    refused = 0
    for seed in range(0, 50, 5):
        f, epsilon, architecture, prefer = random_case(seed)
        try:
            construct(f, epsilon, architecture=architecture, options={"prefer": prefer})
        except (RefusedError, DomainError):
            refused += 1
    assert refused <= 2


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_random_targets(block):
    for seed in range(1000 + 52 * block, 1052 + 52 * block):
        test_random_targets_resist_the_attack(seed)


# ---- the sum heads


def test_heads_return_the_mean_exactly_enough():
    z = torch.randn(3, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = z[..., 2:4].mean(1, keepdim=True).expand(-1, 7, -1)
    from sumformer.theorems.alberti_2023.theorem_4_4 import mean_head as linformer_head

    for head in (mean_head, linformer_head(7, 1), linformer_head(7, 5), sum_head(7, 1), sum_head(7, 4), favor_head(3)):
        out = head(6, [2, 3], [4, 5])(z)
        assert torch.allclose(out[..., 4:], wanted, atol=1e-14)
        assert not out[..., :4].any()


@pytest.mark.parametrize(("n", "k"), [(6, 2), (6, 3), (5, 1)])
def test_the_printed_f_of_the_linformer_gives_n_over_k_times_the_sum(n, k):
    """F = (1/k)·1 with values scaled by n, as in A 4.3, returns (n/k)·Σ; F = (1/n)·1 returns Σ."""
    x = torch.rand(1, n, 2, dtype=torch.float64)
    layer = LinformerAttention(2, n_max=n, k=k, d_head=2).double()
    with torch.no_grad():
        for weight in (layer.W_Q.weight, layer.W_K.weight):
            weight.zero_()
        layer.W_V.weight.copy_(n * torch.eye(2))
        layer.W_O.weight.copy_(torch.eye(2))
        layer.E.fill_(1 / n)
        layer.F.fill_(1 / k)
        printed = layer(x)
        layer.F.fill_(1 / n)
        ours = layer(x)
    total = x.sum(1, keepdim=True).expand_as(x)
    assert torch.allclose(printed, n / k * total)
    assert torch.allclose(ours, total)


def test_weights_are_free_of_n_where_the_target_is():
    f = target(GAUSS, n="any", d=1)
    for architecture in ("transformer", "performer"):
        made = construct(f, 1e-2, architecture=architecture)
        assert made.network.ledger["tokens"] is None
        for n in (2, 100, 3000):
            X = tokens(f, n, batch=1)
            assert (made(X) - f(X)).abs().max() <= made.certificate.total
    with pytest.raises(RefusedError, match="k×n"):
        construct(f, 1e-2, architecture="linformer")
    with pytest.raises(RefusedError, match="number of tokens"):
        construct("x*sum(y)", 1e-2, n="..10", architecture="transformer")


# ---- the file


def test_saved_and_loaded_it_is_the_same(tmp_path):
    made = construct(GAUSS, 1e-2, n=4, architecture="linformer", options={"k": 2})
    made.save(tmp_path)
    again = load(tmp_path)
    X = tokens(made.target, 4)
    assert isinstance(again.network, CompiledTransformer)
    assert torch.equal(again(X), made(X))
    assert again.network.ledger == json.loads(json.dumps(made.network.ledger))


def test_the_dense_twin_is_an_ordinary_encoder_that_trains():
    made = construct("sin(3*mean(y) + x)", 1e-1, n=3, architecture="transformer")
    X = tokens(made.target, 3, batch=5)
    twin = made.network.dense()
    assert torch.allclose(twin(X), made.network(X), atol=1e-12)
    assert all(type(block.attention) is SoftmaxAttention for block in twin.blocks)
    twin(X).square().sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in twin.parameters())
    made.network.requires_grad_(True)
    made.network(X).square().sum().backward()
    assert made.network.blocks[0].feed_forward.value_1.grad.any()


def test_it_exports_to_onnx(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from sumformer.interop.onnx import export_onnx, onnx_error

    made = construct("sin(3*mean(y) + x)", 1e-1, n="any", architecture="performer")
    path = export_onnx(made.network, tmp_path / "network.onnx", tokens(made.target, 3))
    assert onnx_error(made.network, path, tokens(made.target, 5, batch=3)) <= 1e-12


def test_padding_is_out_of_sight():
    made = construct(GAUSS, 1e-1, n="any", d=1, architecture="transformer")
    X = tokens(made.target, 5, batch=2)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    out = made.network(X, attention_mask=mask)
    assert torch.allclose(out[0, :3], made.network(X[:1, :3])[0], atol=1e-12)
    assert not out[0, 3:].any()


def test_every_hidden_unit_is_in_the_ledger_once_and_nothing_else_is_not_0():
    made = construct(from_gallery("z_score", d=2, n=4), 1e-1, architecture="performer")
    network, ledger = made.network, made.network.ledger
    seen = [torch.zeros(block.feed_forward.d_hidden, dtype=torch.long) for block in network.blocks]
    biases = [torch.zeros(network.width_of_stream, dtype=torch.float64) for _ in network.blocks]
    for gadget in ledger["gadgets"]:
        for entry in (e for stage in gadget["stages"] for e in stage):
            first, end = entry["units"]
            seen[entry["block"]][first:end] += 1
            layer = network.blocks[entry["block"]].feed_forward
            rows = layer.matrix(1).to_dense()[first:end]
            assert torch.equal(rows, rows[:1].expand_as(rows))
            written = layer.matrix(2).to_dense()[:, first:end].any(1).nonzero()[:, 0].tolist()
            assert set(written) <= {int(c) for c in entry["writes"]}
            for c, value in entry["constants"].items():
                biases[entry["block"]][int(c)] += value
    for k, counts in enumerate(seen):
        assert (counts == 1).all() or (counts.numel() == 1 and not network.blocks[k].feed_forward.nonzero_2)
        assert torch.allclose(biases[k], network.blocks[k].feed_forward.b_2, atol=1e-12)
    attention = network.attention
    assert not attention.W_Q.weight.any()
    assert not attention.W_K.weight.any()
    assert int(attention.W_V.weight.count_nonzero()) == len(ledger["attention"]["means"])


def test_every_value_is_as_near_its_ideal_as_the_ledger_says(tmp_path):
    from sumformer.experiments.explain import explain

    for source, d in ((GAUSS, 1), ("x*dot(x, sum_others(y)) - 0.5*sum_others(y)**2", 2)):
        made = construct(source, 1e-2, n=3, d=d, architecture="transformer")
        made.save(tmp_path / str(d))
        for seed in range(5):
            found = explain(tmp_path / str(d), tokens(made.target, 3, batch=1, seed=seed)[0])
            assert found.violations == []
            assert torch.allclose(found.attention, torch.full((3, 3), 1 / 3, dtype=torch.float64))
            lines = {v["name"]: v["range"] for v in made.network.ledger["values"]}
            assert all(lines[v.name][0] - 1e-9 <= v.ideal <= lines[v.name][1] + 1e-9 for v in found.values)


def test_unfaithful_networks_are_named():
    made = construct("x - mean(y)", 1e-2, n=3, architecture="transformer")
    network = made.network
    network.blocks.append(network.blocks[network.attention_block])
    assert not faithfulness(network).faithful


# ---- refusals


def test_refusals_say_what_can_be_done():
    with pytest.raises(RefusedError, match="float64"):
        construct("x - mean(y)", 1e-2, architecture="transformer", dtype="float32")
    with pytest.raises(InputError, match="prefer"):
        construct("x - mean(y)", 1e-2, architecture="transformer", options={"prefer": "beauty"})
    with pytest.raises(RefusedError, match="not compiled"):
        construct("x - mean(y)", 1e-2, n=2, architecture="transformer", route="magic")
    with pytest.raises(RefusedError) as refusal:
        construct("sin(3*x)*mean(y)", 1e-13, n=3, architecture="transformer", options={"prefer": "depth"})
    assert refusal.value.reachable is not None
    assert refusal.value.reachable > 1e-13
    with pytest.raises(RefusedError, match=r"ε = 1e-16: its share is 4\.5e-17 \(45 %\)") as refusal:
        construct("x*mean(exp(y))", 1e-16, n=3, architecture="transformer")
    started = {reason.split(":")[0] for reason in refusal.value.reasons}
    assert started >= {"sums", "symmetric", "grid", "nearest, by trying"}


@pytest.mark.parametrize("source", ["mean_others(y)", "sum_others(exp(x*y)*y)/sum_others(exp(x*y))", "sum(y)"])
def test_weights_that_know_n_are_for_one_n(source):
    assert construct(source, 0.1, n=4, architecture="transformer").network.exact_n == 4
    with pytest.raises(RefusedError, match="number of tokens"):
        construct(source, 0.1, n="..5", architecture="transformer", route="sums")


@pytest.mark.slow
def test_gaussian_attention_by_the_symmetric_route():
    made = construct(GAUSS, 1e-3, n=8, architecture="transformer", route="symmetric")
    counted = faithfulness(made.network)
    assert counted.nonzero <= 25_000
    assert counted.feed_forward_layers <= 40
    holds(made, 8)


def test_sparse_feed_forward_is_feed_forward():
    layer = SparseFeedForward(4, 6, 5, 7).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for i, rows, columns, count in ((1, 6, 4, 5), (2, 4, 6, 7)):
            flat = torch.randperm(24, generator=generator)[:count].sort().values
            getattr(layer, f"place_{i}").copy_(torch.stack([flat // columns, flat % columns]))
            getattr(layer, f"value_{i}").normal_(generator=generator)
            assert rows * columns == 24
        layer.b_1.normal_(generator=generator)
        layer.b_2.normal_(generator=generator)
    x = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    assert torch.allclose(layer(x), layer.dense()(x), atol=1e-14)

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
import torch

from sumformer.errors import RefusedError
from sumformer.nn import FeedForward, Hardmax, ResidualBlock, SoftmaxAttention, SparseAttention
from sumformer.nn import patterns as sparse
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.token_stack import ReluStack, TokenStack
from sumformer.targets.domain import Box
from sumformer.theorems.yun_2020_deep.grid import Grid, as_exact
from sumformer.theorems.yun_2020_deep.network import deep_network
from sumformer.theorems.yun_2020_deep.quantise import quantise, quantise_count
from sumformer.theorems.yun_2020_deep.value_mapping import value_count

from .networks import build, inside, plan_of

E = Fraction(1, 2**10)
CASES = [
    {"n": 2, "d": 1, "q": 4},
    {"n": 3, "d": 1, "q": 4},
    {"n": 2, "d": 2, "q": 3},
    {"n": 2, "d": 2, "q": 2, "outputs": 3},
    {"n": 2, "d": 2, "q": 2, "outputs": 1},
    {"n": 3, "d": 1, "q": 3, "positions": True},
    {"n": 3, "d": 1, "q": 3, "pattern": sparse.Window(1)},
    {"n": 4, "d": 1, "q": 2, "pattern": sparse.Strided(2)},
]
over_cases = pytest.mark.parametrize("case", CASES, ids=str)


@over_cases
def test_exact_hardmax_and_softmax_networks_agree_to_the_last_bit(case):
    parts, values = build(**case)
    X = inside(parts.grid, float(E))
    wanted = torch.from_numpy(values[: len(X)])
    soft, hard = deep_network(parts, Box.unit(case["d"]), E), deep_network(parts, Box.unit(case["d"]), None)
    assert torch.equal(soft(X), wanted)
    assert torch.equal(hard(X), wanted)
    few = as_exact([[[Fraction(v) * case["q"] for v in token] for token in x] for x in X[:4].tolist()])
    for fused in (False, True):
        assert (parts(few, fused).astype(np.float64) == values[:4]).all()


@over_cases
def test_fused_is_the_same(case):
    parts, _ = build(**case)
    X = inside(parts.grid, float(E))
    for e in (E, None):
        plain, fused = (
            deep_network(parts, Box.unit(case["d"]), e),
            deep_network(parts, Box.unit(case["d"]), e, fused=True),
        )
        assert [s.fused for s in fused.layers if isinstance(s, TokenStack)].count(True) == 1
        assert torch.equal(plain(X), fused(X))
        assert torch.equal(plain.fuse()(X), fused.fuse(False)(X))


@over_cases
def test_nothing_is_wider_than_the_class(case):
    """Two heads of size 1, and one or four hidden units, in blocks of `sumformer.nn`."""
    parts, _ = build(**case)
    for e, r in ((E, 4), (None, 1)):
        network = deep_network(parts, Box.unit(case["d"]), e)
        z = network.embedding(inside(parts.grid, float(E), most=7))
        z = z if network.positions is None else network.positions(z)
        for layer in network.layers:
            blocks = [layer.block(i) for i in range(len(layer))] if isinstance(layer, TokenStack) else [layer]
            if isinstance(layer, TokenStack):
                whole = layer(z)
            for block in blocks:
                assert isinstance(block, ResidualBlock)
                if isinstance(block.attention, SoftmaxAttention | SparseAttention):
                    assert (block.attention.nhead, block.attention.d_head) == (2, 1)
                    assert isinstance(block.attention.normaliser, Hardmax) == (r == 1)
                elif r == 4:
                    assert isinstance(block.feed_forward, FeedForward)
                    assert block.feed_forward.d_hidden == 4
                z = block(z)
            if isinstance(layer, TokenStack):
                assert torch.equal(z, whole)


@over_cases
def test_layer_counts_are_the_theorems(case):
    parts, _ = build(**case)
    n, d, q = case["n"], case["d"], case["q"]
    plan, grid, Q = plan_of(n, d, case.get("positions", False), case.get("pattern")), parts.grid, q**d
    value = len(parts.look_up) + (0 if parts.reject is None else len(parts.reject))
    counts = plan.counts(grid)
    assert [len(parts.quantise), len(parts.contextual), value] == list(counts.values())
    if grid.places is None:
        assert counts["quantise"] == d * q + d
        assert counts["contextual mapping"] == Q + 1
        pairs = Q * (Q - 1) // 2 if n == 2 else Q * (Q - 1) * (Q - 2) // 6
        assert counts["value mapping"] == 1 + d + n * pairs == value_count(grid)
    else:
        assert counts["quantise"] == d * n * q == quantise_count(grid)
        assert counts["value mapping"] == n * Q**n
        pattern = case.get("pattern")
        attention = n * Q + 1 if pattern is None else pattern.p * (n - 1) * Q + pattern.assumption(n).reach
        assert counts["contextual mapping"] == attention


def test_outside_and_equal_cells_go_to_zero():
    parts, _ = build(3, 1, 4)
    soft = deep_network(parts, Box.unit(1), E)
    X = inside(parts.grid, float(E))
    for value in (-0.3, 1.0, 1.7, 40.0, -1e6):
        outside = X.clone()
        outside[:, 1, 0] = value
        assert soft(outside).abs().max() == 0
    equal = X.clone()
    equal[:, 1] = equal[:, 0]
    assert soft(equal).abs().max() == 0


def test_the_network_is_equivariant_and_can_be_saved(tmp_path):
    parts, _ = build(3, 1, 4)
    soft = deep_network(parts, Box.unit(1), E)
    X = inside(parts.grid, float(E))
    order = torch.tensor([2, 0, 1])
    assert torch.equal(soft(X[:, order]), soft(X)[:, order])
    soft.save_pretrained(tmp_path)
    assert torch.equal(DeepTransformer.from_pretrained(tmp_path)(X), soft(X))


def test_another_box_is_the_same_network_moved():
    parts, values = build(2, 1, 4)
    box = Box.parse("-2:1", 1)
    X = inside(parts.grid, float(E)) * 3 - 2
    assert torch.equal(deep_network(parts, box, E)(X), torch.from_numpy(values[: len(X)]))


@pytest.mark.parametrize("q", [2, 3])
def test_quantise_on_every_piece(q):
    grid = Grid(2, 1, q)
    t = [Fraction(k, 7) for k in range(-9, 7 * q + 9)]
    got = quantise(grid)(as_exact([[v] for v in t]))[:, 0]
    assert list(got) == [t_ // 1 if 0 <= t_ < q else -grid.outside for t_ in t]


def test_the_ramps_stay_in_the_range_of_the_values():
    parts, values = build(3, 1, 4)
    soft = deep_network(parts, Box.unit(1), Fraction(1, 4))
    X = torch.rand(2000, 3, 1, dtype=torch.float64)  # most of these have a token on a ramp
    out = soft(X)
    assert out.min() >= min(0.0, values.min())
    assert out.max() <= max(0.0, values.max())


def test_float64_refuses_what_it_cannot_represent():
    parts, values = build(3, 3, 3)
    with pytest.raises(RefusedError, match="not representable in float64"):
        deep_network(parts, Box.unit(2), E)
    token = Grid(3, 3, 3).tokens(parts.grid.cells()[:1])
    assert (parts(token, fused=True).astype(np.float64) == values[0]).all()  # exact arithmetic does


def test_fewer_cells_than_tokens():
    with pytest.raises(RefusedError, match="cannot hold 5 tokens apart"):
        build(5, 2, 2)


@pytest.mark.parametrize(("case", "layers"), [((3, 1, 16), 1680), ((2, 2, 6), 1260)])
def test_building_is_a_matter_of_seconds(case, layers):
    start = time.process_time()
    parts, values = build(*case)
    soft = deep_network(parts, Box.unit(case[1]), E)
    assert time.process_time() - start < 15  # 0.6 s on an idle core
    assert len(parts.look_up) == layers
    X = inside(parts.grid, float(E), most=40)
    assert torch.equal(soft(X), torch.from_numpy(values[:40]))
    assert [s.fused for s in soft.fuse().layers if isinstance(s, TokenStack)].count(True) == 1
    assert torch.equal(soft(X), torch.from_numpy(values[:40]))


def test_many_inputs_at_a_time():
    parts, _ = build(3, 1, 4)
    soft = deep_network(parts, Box.unit(1), E)
    X = torch.rand(20_000, 3, 1, dtype=torch.float64)
    soft(X[:100])
    start = time.process_time()
    soft(X)
    assert len(X) / (time.process_time() - start) > 1e4


def test_stack_that_is_no_look_up_is_not_fused():
    torch.manual_seed(0)
    stack = ReluStack(2, 4, 3)
    assert not stack.is_look_up()

"""d_p(f, N) ≤ total ≤ ε, against a quadrature fine enough to see the cells and the ramps."""

from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import InputError, RefusedError
from sumformer.nn import patterns as sparse
from sumformer.targets import target
from sumformer.theorems.construction import construct
from sumformer.theorems.yun_2020_deep.certified import zero_bound
from sumformer.theorems.yun_2020_deep.multisets import Multisets, longest_run, orders


def distance(f, network, p, per_axis, offset=0.37):
    """(∫ ‖f − N‖_p^p)^{1/p} by the midpoint rule with `per_axis` points per variable; exact in the limit."""
    n, d = f.tokens.minimum, f.input_box.d
    sides = [(float(a), float(b)) for a, b in zip(f.input_box.lower, f.input_box.upper, strict=True)]
    step = (torch.arange(per_axis, dtype=torch.float64) + offset) / per_axis
    axes = [low + (high - low) * step for _ in range(n) for low, high in sides]
    X = torch.cartesian_prod(*axes).reshape(-1, n, d)
    total = sum(float((f(part) - network(part)).abs().pow(p).sum()) for part in X.split(50_000))
    return (math.prod(b - a for a, b in sides) ** n * total / len(X)) ** (1 / p)


CASES = [
    ("x+mean(y)", {"n": 2}, 0.2, "deep-transformer", {}, 160),
    ("x+mean(y)", {"n": 3}, 1.5, "deep-transformer", {}, 35),
    ("x+mean(y)", {"n": 2}, 0.6, "deep-transformer", {"p": 2}, 160),
    ("x+mean(y)", {"n": 2}, 0.4, "deep-transformer", {"options": {"positions": True}}, 90),
    ("cat(x, mean(y))", {"n": 2, "box": "-1:1"}, 1.5, "deep-transformer", {}, 90),
    ("norm(x-mean(y))", {"n": 2, "d": 2}, 0.4, "deep-transformer", {}, 12),
    ("exp(x)*sum_others(y)", {"n": 2}, 0.9, "sparse-transformer", {}, 60),
    ("i*x - mean(j*y)", {"n": 2, "positions": True}, 0.3, "deep-transformer", {}, 90),
    ("x/i + max(y)", {"n": 3, "positions": True}, 1.5, "sparse-transformer", {"p": 2}, 15),
    ("x+mean(y)", {"n": 3}, 0.6, "sparse-transformer", {"p": 1.5, "pattern": sparse.Star(1)}, 17),
]


@pytest.mark.parametrize(("source", "domain", "epsilon", "architecture", "options", "per_axis"), CASES)
def test_the_quadrature_lies_under_the_certificate(source, domain, epsilon, architecture, options, per_axis):
    f = target(source, **domain)
    built = construct(f, epsilon, architecture=architecture, **options)
    c = built.certificate
    assert c.total <= epsilon
    assert c.total == pytest.approx(math.fsum(t.bound for t in c.terms), rel=1e-12)
    assert c.norm == f"d_{options.get('p', 1)}"
    found = distance(f, built.network.fuse(), options.get("p", 1), per_axis)
    assert found <= c.total
    assert found >= 0.3 * c.total  # the bound is no fantasy
    assert built.network.attention_layers > 0
    assert all(step["built"] == step["count"] for step in c.constants["layers"])


def test_a_tenth_and_a_half_of_the_zero_networks_error_are_met():
    for n, share, whole in ((2, 0.1, 2.0), (3, 0.5, 3.0)):
        f = target("x+mean(y)", n=n)
        assert zero_bound(f, n, 1) == pytest.approx(whole, rel=0.02)
        built = construct(f, share * whole, architecture="deep-transformer")
        assert built.certificate.total <= share * whole
        assert built.seconds < 60


def test_the_zero_network_suffices_where_it_does():
    f = target("x+mean(y)", n=2)
    built = construct(f, 2.5, architecture="deep-transformer")
    assert "the zero network suffices" in built.certificate.constants["why"]
    assert built.network.attention_layers == 0
    assert built(torch.rand(3, 2, 1, dtype=torch.float64)).abs().max() == 0
    assert built.certificate.total <= 2.5


@pytest.mark.parametrize(
    ("architecture", "domain"),
    [("deep-transformer", {}), ("deep-transformer", {"positions": True}), ("sparse-transformer", {})],
)
def test_outside_the_box(architecture, domain):
    """0 by Theorem 2; not with positions, nor along a pattern."""
    c = construct("x+mean(y)+1", 1.0, architecture=architecture, n=2, box="-1:1", **domain)
    outside = torch.tensor([-1e6, -3.0, -1.001, 1.001, 2.0, 1e6], dtype=torch.float64)
    X = torch.cartesian_prod(outside, torch.linspace(-0.9, 0.9, 20, dtype=torch.float64)).unsqueeze(-1)
    found = c.network(torch.cat([X, X.flip(1)]))
    assert bool((found == 0).all()) == (architecture == "deep-transformer" and not domain)


def test_a_refusal_says_which_epsilon_is_reachable():
    with pytest.raises(RefusedError, match="the largest that fits is 1/δ") as refusal:
        construct("x+mean(y)", 1e-3, architecture="deep-transformer", n=3)
    reachable = refusal.value.reachable
    assert 1e-3 < reachable < 3


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": "any"}, "one number of tokens"),
        ({"n": 1}, "one number of tokens"),
        ({"n": 2, "dtype": "float32"}, "dtype float64"),
        ({"n": 2, "route": "sums"}, "no route"),
        ({"n": 2, "p": 0.5}, "1 ≤ p < ∞"),
        ({"n": 2, "pattern": sparse.Window(1)}, "attends to all"),
    ],
)
def test_what_does_not_fit_is_said(arguments, match):
    with pytest.raises(InputError, match=match):
        construct("x+mean(y)", 0.5, architecture="deep-transformer", **arguments)


def test_multisets_are_counted_and_found():
    table = Multisets(3, 4)
    assert len(table) == len(table.rows) == 20
    assert int(orders(table.rows).sum()) == 4**3
    cells = torch.cartesian_prod(*[torch.arange(4)] * 3).numpy()
    row, place = table.find(cells)
    for found, where, want in zip(table.rows[row], place, cells, strict=True):
        assert [found[i] for i in where] == list(want)
    assert [int(v) for v in longest_run(cells[:2])] == [3, 2]

"""Functions of the index: i and j, certified in the sup norm for every list, by any route."""

import math

import pytest
import torch

import sumformer
from sumformer.certificates.attack import attack, violation
from sumformer.errors import InputError, TargetError
from sumformer.nn import Positioned
from sumformer.targets import target
from sumformer.theorems.alberti_2023.position_tables import tabulated

CASES = [
    ("i*x + sum(y*j)", {"n": 5, "d": 2}, 1e-9, "exact"),
    ("mean(exp(-(i-j)**2/4)*y)", {"n": 4, "d": 1}, 1e-3, "sums"),
    ("sin(x*i) + mean(y/j)", {"n": 5, "d": 1}, 1e-9, "sums"),
    ("max(y*j)", {"n": 4, "d": 1}, 0.2, "grid"),
    ("max(abs(x-y)/(1+abs(i-j)))", {"n": 4, "d": 1, "box": "-1:1"}, 0.3, "grid"),
    ("x*i", {"n": 1, "d": 1}, 1e-9, "exact"),
]


def by_hand(source, X):
    """The value of the source in Python, i and j from 1, for d = 1."""
    n = X.shape[0]
    names = {"exp": math.exp, "sin": math.sin, "abs": abs, "max": max}
    body = source.replace("mean(", "_mean(lambda y, j: ").replace("sum(", "_sum(lambda y, j: ")

    def value(i):
        tokens = [(X[k, 0].item(), k + 1) for k in range(n)]
        scope = names | {
            "_mean": lambda e: sum(e(y, j) for y, j in tokens) / n,
            "_sum": lambda e: sum(e(y, j) for y, j in tokens),
            "x": tokens[i][0],
            "i": i + 1,
        }
        return eval(body, scope)  # a fixed string of this file

    return torch.tensor([[value(i)] for i in range(n)], dtype=torch.float64)


@pytest.mark.parametrize(("source", "domain", "epsilon", "route"), CASES)
def test_certified_and_attacked(source, domain, epsilon, route):
    c = sumformer.construct(source, epsilon, positions=True, **domain)
    assert c.certificate.route == route
    assert isinstance(c.network, Positioned)
    assert not c.network.equivariant
    found = attack(c.target, c.network, effort="quick", seconds=3)
    assert not violation(found, c.certificate.total)[0]
    assert c.certificate.total <= epsilon


@pytest.mark.parametrize("source", ["mean(exp(-(i-j)**2/4)*y)", "sin(x*i) + mean(y/j)", "i*x + sum(y*j)"])
def test_i_and_j_count_from_one(source):
    X = torch.rand(1, 4, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    f = target(source, n=4, positions=True)
    torch.testing.assert_close(f(X)[0], by_hand(source, X[0]))
    c = sumformer.construct(f, 1e-2)
    assert float((c(X)[0] - by_hand(source, X[0])).abs().max()) <= c.certificate.total


def test_equal_tokens_at_different_places_are_told_apart():
    c = sumformer.construct("x*i", 1e-6, n=3, positions=True)
    X = torch.ones(1, 3, 1, dtype=torch.float64)
    torch.testing.assert_close(c(X)[0, :, 0], torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


def test_saved_and_loaded(tmp_path):
    c = sumformer.construct("max(y*j) + x", 0.3, n=3, positions=True)
    c.save(tmp_path)
    again = sumformer.load(tmp_path)
    X = torch.rand(7, 3, 1, dtype=torch.float64)
    assert torch.equal(again(X), c(X))
    assert again.target == c.target
    assert again.target.positioned
    assert c.certificate.constants["positions"] is True


def test_positions_of_padded_lists_are_ranks_among_the_kept():
    network = sumformer.construct("x*i + sum(y*j)", 1e-6, n=3, positions=True).network
    X = torch.rand(1, 5, 1, dtype=torch.float64)
    mask = torch.tensor([[0, 1, 1, 0, 1]])
    short = X[:, [1, 2, 4]]
    assert torch.equal(network(X, attention_mask=mask)[:, [1, 2, 4]], network(short))


def test_it_prints_as_it_was_written():
    f = target("mean(exp(-(i - j)**2)*y[0]) + x[1]*i", n=3, d=2, positions=True)
    assert f.as_written == "mean(exp(-(i - j)**2)*y[0]) + x[1]*i"
    assert "i and j from 1 to 3" in repr(f)
    assert target("mean(y)", n=3).as_written == "mean(y)"


def test_the_box_is_that_of_the_given_tokens():
    c = sumformer.construct("x*i", 1e-6, n=3, d=1, box="-2:2", positions=True)
    assert str(c.target.input_box) == "-2:2"
    assert str(c.target.box) == "-2:2,1:3"
    with pytest.raises(sumformer.errors.OutsideBoxError):
        c(torch.full((1, 3, 1), 2.5, dtype=torch.float64))


def test_wrong_use_is_explained():
    with pytest.raises(TargetError, match="positions"):
        target("x*i", n=3)
    with pytest.raises(TargetError, match="y is free"):
        target("x*j", n=3, positions=True)
    with pytest.raises(InputError, match="one number of tokens"):
        target("x*i", positions=True)
    with pytest.raises(InputError, match="needs source text"):
        target(lambda x, y: x, n=3, positions=True)


TABLES = [
    ("sum(max(0, min(1, i-j+1))*y)/i", 8),  # the mean of what came before
    ("mean(exp(-abs(i-j))*y)", 6),
    ("sum_others(y/(i-j))", 6),
    ("x + sum_others(y*exp(-(i-j)**2)/(i-j)**2)", 4),
    ("mean((y + abs(i-j))**2*exp(-abs(i-j)))", 3),
]


@pytest.mark.parametrize(("source", "n"), TABLES)
def test_rough_functions_of_the_places_are_tabulated_exactly(source, n, tmp_path):
    c = sumformer.construct(source, 1e-9, n=n, positions=True)
    assert c.certificate.route == "sums"
    assert c.certificate.constants["written"] == c.target.source != c.certificate.target
    found = attack(c.target, c.network, effort="quick", seconds=2)
    assert not violation(found, c.certificate.total)[0]
    c.save(tmp_path)
    again = sumformer.load(tmp_path)
    assert again.target == c.target
    X = torch.rand(3, n, 1, dtype=torch.float64)
    assert torch.equal(again(X), c(X))


@pytest.mark.parametrize(
    ("source", "n"),
    [
        *TABLES,
        ("mean(max(x,y)*abs(i-j)/j)", 4),
        ("max(norm(x-y)*min(i,j)) - mean(min(y, sum(y*abs(i-j)))*(i-j))", 3),
    ],
)
def test_a_table_changes_no_value_at_whole_positions(source, n):
    f = target(source, n=n, positions=True)
    tables = list(tabulated(f))
    assert tables
    X = torch.rand(50, n, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for table in tables:
        assert table.source != f.source
        value = table(X)
        assert bool(value.isfinite().all()) or "_others" in source  # over j alone, k(i, p) may not exist at i = p
        if bool(value.isfinite().all()):
            torch.testing.assert_close(value, f(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(tables[-1](X), f(X), rtol=1e-12, atol=1e-12)


def test_nothing_is_tabulated_where_i_and_j_do_not_meet():
    assert list(tabulated(target("i*x + sum(y*abs(j-2))", n=4, positions=True))) == []

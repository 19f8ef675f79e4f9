"""Sums over parts of the tokens: merged in any order within the certified bound, and nothing else is merged."""

from __future__ import annotations

import pickle
import random

import pytest
import torch

import sumformer
from sumformer.errors import InputError, OutsideBoxError, RefusedError
from sumformer.theorems.merged import PartialSum

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"


@pytest.fixture(scope="module")
def gauss():
    return sumformer.construct(GAUSS, 1e-4, d=2, merges=40)


def merged_anyhow(parts: list[PartialSum], rng: random.Random) -> PartialSum:
    while len(parts) > 1:
        i = rng.randrange(len(parts) - 1)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "mixed"])
@pytest.mark.parametrize(
    ("source", "tokens", "epsilon"),
    [
        (GAUSS, "any", 1e-3),
        ("mean(abs(x-y))", "any", 1e-2),
        ("x*sum(y)**2 - sum(x*y)", "..3000", 1e4),
        ("mean(sigmoid((x-y)/0.2)) + mean(y*y)", "any", 1e-3),
    ],
)
def test_any_order_of_merges_stays_within_the_bound(source, tokens, epsilon, dtype):
    dtype = "mixed" if "abs" in source and dtype == "float32" else dtype  # route mesh computes in float64
    c = sumformer.construct(source, epsilon, d=1, n=tokens, dtype=dtype, merges=40)
    rng = random.Random(0)
    for trial in range(4):
        n = rng.randrange(41, 3000)
        Z = torch.rand(2, n, 1, generator=torch.Generator().manual_seed(trial)).to(c.network.outside)
        cuts = sorted(rng.sample(range(1, n), 40))
        pieces = [Z[:, a:b] for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
        whole = merged_anyhow([c.summarise(piece) for piece in pieces], rng)
        assert whole.depth <= 40
        found = c.apply(Z[:, :50], whole)
        wanted = c.target(Z.double())[:, :50]
        assert (found - wanted).abs().max() <= c.certificate.total


def test_weights_padding_and_empty_parts_are_counted(gauss):
    Z = torch.rand(1, 30, 2, dtype=torch.float64)
    keep = torch.arange(30).expand(1, 30) < 20
    parts = gauss.summarise(Z, attention_mask=keep) + gauss.summarise(Z[:, 20:], weights=torch.full((1, 10), 2.0))
    parts += gauss.summarise(Z, attention_mask=torch.zeros(1, 30, dtype=torch.bool))
    whole = torch.cat([Z, Z[:, 20:]], 1)
    assert float(parts.state.count) == 40
    assert (gauss.apply(Z, parts) - gauss.target(whole)[:, :30]).abs().max() <= gauss.certificate.total


def test_deeper_merges_cost_more_and_are_asked_for():
    totals = [sumformer.construct("x*mean(y)", 1, dtype="float32", merges=k).certificate.total for k in (0, 20_000)]
    assert totals[1] > 20_000 * 2.0**-24 > 10 * totals[0]
    plain = sumformer.construct(GAUSS, 1e-2, d=1)
    part = plain.summarise(torch.rand(1, 3, 1))
    with pytest.raises(InputError, match="merged 0 deep, not 1"):
        part + part
    with pytest.raises(RefusedError):
        sumformer.construct(GAUSS, 1e-3, d=1, dtype="float32", merges=2**20)


@pytest.mark.parametrize(
    ("source", "dtype"), [("max(norm(x-y))", "float64"), ("min(norm(x-y)) + mean(abs(x-y))", "mixed")]
)
def test_counts_of_cells_add_exactly_however_deep(source, dtype):
    c = sumformer.construct(source, 0.3, d=2, route="cells", dtype=dtype)
    Z = torch.rand(1, 200, 2, generator=torch.Generator().manual_seed(0)).to(c.network.outside)
    total = c.summarise(Z[:, :1])
    for i in range(1, 200):
        total = total + c.summarise(Z[:, i : i + 1])
    assert torch.equal(c.apply(Z, total), c(Z))
    assert "merged" not in c.certificate.statement  # what was not asked for is not said


def test_of_routes_that_merge_the_first_is_taken():
    assert sumformer.construct("max(norm(x-y))", 0.3, d=1, merges=3).certificate.route == "cells"
    assert sumformer.construct(GAUSS, 0.3, d=1, merges=3).certificate.route == "sums"
    with pytest.raises(RefusedError, match="no route"):
        sumformer.construct("max(norm(x-y))", 1e-5, d=2, n="..10", merges=3)


def test_parts_cross_processes(gauss, tmp_path):
    gauss.save(tmp_path)
    here, there = sumformer.load(tmp_path), sumformer.load(tmp_path)
    Z = torch.rand(1, 10, 2, dtype=torch.float64)
    both = here.summarise(Z[:, :4]) + pickle.loads(pickle.dumps(there.summarise(Z[:, 4:])))
    assert (there.apply(Z, both) - gauss.target(Z)).abs().max() <= gauss.certificate.total


def test_what_no_certificate_covers_is_refused(gauss):
    Z = torch.rand(1, 5, 2, dtype=torch.float64)
    part = gauss.summarise(Z)
    with pytest.raises(OutsideBoxError):
        gauss.summarise(Z + 1)
    with pytest.raises(OutsideBoxError):
        gauss.apply(Z - 1, part)
    with pytest.raises(InputError, match="of as many sequences"):
        gauss.summarise(Z.expand(2, -1, -1)) + gauss.summarise(Z.expand(3, -1, -1))
    with pytest.raises(InputError, match="whole numbers"):
        gauss.summarise(Z, weights=torch.full((1, 5), 0.5))
    with pytest.raises(InputError, match="of this construction"):
        gauss.apply(Z, part.state)
    with pytest.raises(InputError, match="same construction"):
        part + sumformer.construct(GAUSS, 1e-3, d=2, merges=40).summarise(Z)
    with pytest.raises(InputError, match="n = 0"):
        gauss.apply(Z, gauss.summarise(Z, attention_mask=torch.zeros(1, 5, dtype=torch.bool)))
    few = sumformer.construct("sum(y*x)", 1e-3, n="..7", merges=3)
    part = few.summarise(torch.rand(1, 5, 1))
    with pytest.raises(InputError, match="got n = 10"):
        few.apply(torch.rand(1, 2, 1), part + part)


@pytest.mark.parametrize(
    ("source", "options", "error"),
    [
        ("max(y)", {"n": 3, "route": "grid"}, RefusedError),
        ("mean(sin(x*y))", {"n": 2, "route": "symmetric"}, RefusedError),
        ("sum(y)*i", {"n": 3, "positions": True}, RefusedError),
        ("x*mean(y)", {"n": 3, "architecture": "transformer"}, InputError),
    ],
)
def test_others_cannot_be_merged(source, options, error):
    with pytest.raises(error, match=r"merge"):
        sumformer.construct(source, 0.3, merges=2, **options)


@pytest.mark.parametrize("merges", [-1, 2**20 + 1, 1.0, True, "3", None])
def test_merges_is_a_whole_number(merges):
    with pytest.raises(InputError, match="merges"):
        sumformer.construct("x*mean(y)", 0.1, merges=merges)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("mean_others(y*x)", {"n": 3}),
        ("max(y)", {"n": 3}),
        ("x*mean(y)", {"n": 3, "architecture": "transformer"}),
        ("sum(y)*i", {"n": 3, "positions": True}),
    ],
)
def test_queries_that_must_be_sources_have_no_summaries(source, options):
    c = sumformer.construct(source, 0.5, **options)
    with pytest.raises(InputError):
        c.summarise(torch.rand(1, 3, 1))


def test_python_s_sum_merges_parts_one_after_another():
    made = sumformer.construct(GAUSS, 1e-2, d=1, merges=2)
    X = torch.rand(1, 40, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    parts = [made.summarise(piece) for piece in X.split(10, dim=1)]
    whole = sum(parts[:3])
    assert whole.depth == 2
    assert (made.apply(X, whole) - made(X, sources=X[:, :30])).abs().max() <= 1e-12
    with pytest.raises(InputError, match="merged 2 deep, not 3"):
        sum(parts)
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + parts[0]


NARROW = "sum(exp(-100*norm2(x-y))*y)/sum(exp(-100*norm2(x-y)))"


@pytest.mark.parametrize(("source", "n"), [(NARROW, "..16"), ("mean_others(y*x)", 3), ("sum_others(y)*x", "..5")])
def test_what_could_not_be_asked_of_a_summary_is_not_certified_for_merges(source, n):
    """Their proof is of queries that are among the sources."""
    sumformer.construct(source, 1e-3, n=n)
    with pytest.raises(RefusedError):
        sumformer.construct(source, 1e-3, n=n, merges=2)


def test_a_construction_that_was_saved_is_that_of_its_files(gauss, tmp_path):
    gauss.save(tmp_path)
    Z = torch.rand(1, 5, 2, dtype=torch.float64)
    with pytest.raises(InputError, match="load them in every process"):
        gauss.summarise(Z) + sumformer.load(tmp_path).summarise(Z)

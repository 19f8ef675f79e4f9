"""Constructed against trained: sizes are the networks' own, errors those of the samples, words those of the rows."""

import pytest
import torch

from sumformer.experiments.reproduce import constructed
from sumformer.experiments.reproduce.constructed import LARGE, ONWARD, SMALL
from sumformer.experiments.reproduce.constructed_runs import (
    Sample,
    Task,
    from_construction,
    from_random,
    mlp_parameters,
    relative_error,
)
from sumformer.nn import mlp_sumformer
from sumformer.targets.gallery import GALLERY
from sumformer.theorems.construction import construct


def task(name, n=3, d=1, epsilon=0.1):
    built = construct(GALLERY[name].build(d=d, n=n), epsilon, route="sums")
    return Task(name, built, *(Sample.draw(built.target, 60, n, seed) for seed in range(3)))


@pytest.mark.parametrize(("hidden", "depth"), [(8, 3), (5, 1), (50, 5)])
def test_parameters_are_counted_as_the_network_has_them(hidden, depth):
    network = mlp_sumformer(2, 7, 3, hidden, depth)
    assert mlp_parameters(2, 7, 3, hidden, depth) == sum(p.numel() for p in network.parameters())


def test_equal_size_is_the_widest_that_fits():
    found = task("cauchy_kernel", d=2, epsilon=0.05)
    hidden = constructed._hidden(2, found)
    assert hidden > constructed.LEAST_HIDDEN
    width = found.learn.Y.shape[-1]
    assert mlp_parameters(2, found.latent, width, hidden, constructed.DEPTH) <= found.parameters
    assert mlp_parameters(2, found.latent, width, hidden + 1, constructed.DEPTH) > found.parameters


def test_training_on_lowers_the_error_where_it_learns_and_leaves_the_construction_alone():
    found = task("soft_rank")
    before = relative_error(found.construction.network, found.learn)
    error, rate = from_construction(found, 12, 60)
    assert rate in constructed.RATES_FROM_CONSTRUCTION
    assert error < relative_error(found.construction.network, found.judge)
    assert relative_error(found.construction.network, found.learn) == before


def test_from_random_judges_every_task_on_its_own_sample():
    tasks = [task("centring"), task("soft_rank")]
    errors = from_random(tasks, 8, 2, 40, 20, 2, "cpu", lambda text: None)
    assert [len(row) for row in errors] == [2, 2]
    assert all(0.005 < error < 1 for row in errors for error in row)
    swapped = from_random(tasks[::-1], 8, 2, 40, 20, 2, "cpu", lambda text: None)
    torch.testing.assert_close(torch.tensor(swapped[::-1]), torch.tensor(errors), rtol=0.05, atol=0.0)


def row(name, built, small, large, onward=None):
    found = {"target": name, "certified": 0.01, "latent": 2, "constructed": built, SMALL: small, LARGE: large}
    found |= {f"{SMALL}: parameters": 300, f"{LARGE}: parameters": 20_000, "parameters": 0}
    return found if onward is None else found | {"parameters": 16, ONWARD: onward, "rate": 1e-4}


def test_findings_are_read_from_the_rows():
    rows = [row("a", 1e-16, 0.1, 0.01), row("b", 1e-3, 0.1, 1e-4, 5e-4), row("c", 1e-3, 0.2, 0.1, 2e-3)]
    small, large, exact, onward, ahead, left, *lines = constructed._findings(rows, {"max_pooling": "no"})
    assert "(on 3 of them the least, which has more) on 3 of 3 targets, 150 times" in small
    assert "not on" not in small
    assert "on 2 of 3 targets" in large
    assert large.endswith("not on b")
    assert exact.startswith("1 constructions have no coefficients")
    assert exact.endswith("1.0e-16")
    assert "lowers the error of 1 of the 2" in onward
    assert onward.endswith("raises it for c")
    assert ahead.endswith("on 1 of 2")
    assert left.endswith("max_pooling")
    assert len(lines) == 3
    assert constructed._findings([], {}) == ("no target of the gallery has a construction in this configuration",)

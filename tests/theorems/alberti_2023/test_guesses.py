"""What a refusal suggests: no ε that 0 meets, and advice that fits the target."""

from __future__ import annotations

import re

import pytest

from sumformer.errors import RefusedError
from sumformer.targets.target import target
from sumformer.theorems import routes
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.guesses import (
    GUESS,
    NEAREST,
    NONE,
    ReachedError,
    advice_for,
    at_a_guess,
    useful,
)
from sumformer.theorems.construction import construct

WIDE = ARITHMETICS["float64"]


@pytest.mark.parametrize("tokens", [3, 1000, "any"])
def test_an_infinite_epsilon_is_of_no_use(tokens):
    assert useful(float("inf"), target("x*mean(y)", n=tokens)) is None


@pytest.mark.parametrize(("epsilon", "found"), [(0.5, 0.5), (1.5, None)])
def test_an_epsilon_above_the_target_is_of_no_use(epsilon, found):
    assert useful(epsilon, target("mean(sigmoid((x-y)/0.01))")) == found
    assert at_a_guess(found) == ([NONE] if found is None else ["at a guess, ε ≈ 0.5 could be reached"])


@pytest.mark.parametrize(
    ("source", "tokens", "word"),
    [
        ("log(mean_others(exp(-50*norm2(x-y))))", "2..10000", "offset"),
        ("mean(exp(-9*(x-y)**2)*y)/mean(exp(-9*(x-y)**2))", "any", "fewer tokens"),
        ("mean(exp(-9*(x-y)**2)*y)/mean(exp(-9*(x-y)**2))", "..100", None),
        ("mean(exp(-(x-y)**2/1000))", "any", None),
    ],
)
def test_advice_fits_what_is_divided_by(source, tokens, word):
    found = " ".join(advice_for(target(source, n=tokens), WIDE, own_token=True))
    assert (word in found) if word else not found


@pytest.mark.parametrize(
    ("source", "domain", "largest"),
    [
        ("mean(log(norm2(x-y)+1e-6))", {"d": 2}, 13.8),
        ("sum_others((y-x)/(norm2(y-x)+0.01)**1.5)", {"d": 3, "n": "..100"}, 20.0 * 99),
        ("sum(exp(-(x-y)**2))", {"n": 900}, 500.0),
    ],
)
def test_peaks_and_many_tokens_are_seen(source, domain, largest):
    """An ε that is smaller than |f| is of use, however rare the tokens at which |f| is that large."""
    assert useful(largest, target(source, **domain)) == largest
    assert useful(1e32, target(source, **domain)) is None


@pytest.mark.parametrize(
    ("source", "domain", "epsilon"),
    [
        ("mean(exp(-30*norm2(x-y)))", {"d": 5, "route": "mesh"}, 0.01),
        ("mean(exp(-30*norm2(x-y)))", {"d": 5, "route": "mesh"}, 0.089),
        ("mean(exp(-9*abs(x-y)))", {"d": 1, "route": "mesh"}, 1e-9),
        (
            "mean(exp(-200*(x[0]-y[0])**2)*exp(-900*(x[1]-y[1])**2)*cos(40*(x[2]-y[2])))",
            {"d": 3, "route": "mesh"},
            1e-6,
        ),
        ("sum(exp(-9*norm(x-y))*y)/sum(exp(-9*norm(x-y)))", {"d": 2, "n": "..100", "route": "mesh"}, 1e-3),
        ("sum(exp(-16*norm2(x-y))*y)/sum(exp(-16*norm2(x-y)))", {"d": 2, "route": "sums"}, 1e-2),
        ("mean(1/(norm2(x+y)+0.5))", {"d": 3, "route": "sums"}, 1e-6),
    ],
)
def test_what_a_refusal_names_can_be_had(source, domain, epsilon):
    """The number is read off the message, as a reader does."""
    with pytest.raises(RefusedError) as refusal:
        construct(source, epsilon, **domain)
    tried = isinstance(refusal.value, ReachedError)
    named = re.findall(rf"(?:{NEAREST}|{GUESS})([\d.e+-]*\d)", str(refusal.value))
    assert len(named) == 1
    assert (NEAREST in str(refusal.value)) == tried
    assert construct(source, float(named[0]), **domain).certificate.total <= float(named[0])


@pytest.mark.parametrize(
    ("source", "d", "epsilons"),
    [
        ("mean(exp(-30*norm2(x-y)))", 5, (0.01, 0.04, 0.06, 0.089, 0.15, 0.25)),
        ("mean(norm(x-y))", 2, (1e-6, 1e-5, 1e-4)),
    ],
)
def test_nodes_named_do_not_rise_with_epsilon(source, d, epsilons):
    named = []
    for epsilon in epsilons:
        with pytest.raises(RefusedError) as refusal:
            construct(source, epsilon, d=d, route="mesh")
        needed, most = re.findall(r"([\d,]+) nodes; at most ([\d,]+)", str(refusal.value))[0]
        named.append(int(needed.replace(",", "")))
        assert named[-1] > int(most.replace(",", ""))
    assert named == sorted(named, reverse=True)


def test_a_refusal_that_tried_longer_than_there_is_patience_names_what_it_found(monkeypatch):
    monkeypatch.setattr(routes, "PATIENCE", 0.0)
    with pytest.raises(RefusedError, match=r"nearest: ε = [\d.e-]+ by route mesh") as refusal:
        construct("mean(exp(-30*norm2(x-y)))", 0.01, d=5)
    assert refusal.value.reachable is not None
    assert "guess" not in str(refusal.value)


def test_no_epsilon_above_the_target_is_named():
    kernel = "exp(-abs(i-j)/5)"
    with pytest.raises(RefusedError) as refusal:
        construct(f"sum({kernel}*y)/sum({kernel})", 0.1, n=512, positions=True)
    assert refusal.value.reachable is None
    assert "e+" not in str(refusal.value)
    assert "more digits" not in str(refusal.value)

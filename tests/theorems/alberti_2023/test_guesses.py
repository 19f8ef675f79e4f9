"""What a refusal suggests: no ε that 0 meets, and advice that fits the target."""

from __future__ import annotations

import pytest

from sumformer.targets.target import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.guesses import NONE, advice_for, at_a_guess, useful

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

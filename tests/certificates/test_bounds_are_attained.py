"""B' of a network whose coefficients were moved, against the worst input an attack finds: above it, and near it."""

from __future__ import annotations

import pytest
from tampered import Tampered

from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check
from sumformer.theorems.construction import construct, load

CASES = {
    "quotient": ("sum(exp(x*y/100)*y)/sum(exp(x*y/100))", {"n": "..100"}, 1.1),
    "quotient of others": ("sum_others(exp(x*y/100)*y)/sum_others(exp(x*y/100))", {"n": "2..100"}, 1.1),
    "mean": ("mean(exp(x*y/100))", {"n": "..100"}, 1.1),
    "sum": ("sum(exp(x*y/100))", {"n": "..100"}, 1.1),
    "sum of others": ("sum_others(exp(x*y/100))", {"n": "2..100"}, 1.1),
    "mean of others": ("mean_others(exp(x*y/100))", {"n": "2..100"}, 1.1),
    "product of kernels": ("mean(exp(x[0]*y[0]/100)*exp(x[1]*y[1]/100))", {"n": "..100", "d": 2}, 1.2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_attained(tmp_path, name):
    source, options, factor = CASES[name]
    construct(source, 1e-6, **options).save(tmp_path / "net")
    saved = Tampered(tmp_path / "net", tmp_path / "moved")

    def move(tensors):
        for coefficients in tensors.values():
            coefficients[0, 1] += 1e-2

    saved.weights(move)
    bound, made = check(saved.folder).bound, load(saved.folder)
    worst = attack(made.target, made.network, seconds=3.0, effort="quick").worst
    assert worst <= bound <= factor * worst

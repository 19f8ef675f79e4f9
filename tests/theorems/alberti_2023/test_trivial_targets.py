"""What is exact, constant, tiny or nested is certified and verified like anything else, or refused in words."""

from __future__ import annotations

import pytest
import torch

import sumformer
from sumformer.errors import RefusedError

EXACT = [
    ("x", {"n": 3}, {}),
    ("-x", {"n": "any"}, {"dtype": "float32"}),
    ("max(x, x)", {"n": 2}, {}),
    ("x", {"n": 3}, {"route": "grid"}),
    ("3", {"n": "..4"}, {"route": "grid"}),
    ("mean(y - y)", {"n": 3}, {}),
    ("mean(0*exp(x*y))", {"n": 3}, {"dtype": "float32"}),
    ("x - x", {"n": 1}, {"architecture": "transformer"}),
    ("0*mean(y)", {"n": 3}, {"architecture": "linformer"}),
    ("sum(y) - sum(y)", {"n": 3}, {"architecture": "performer"}),
]
BOUNDED = [  # (target, ε, domain, how)
    # a kernel that hardly varies: two enclosures of its range differ by an ulp
    ("sum(y/(1.53 + (x-y)**2))/sum(1/(1.53 + (x-y)**2))", 1e-2, {"n": 3, "box": "-1e-6:1e-6"}, {}),
    # reductions inside reductions, compiled; one of its functions, exp(0.5)*x, is a line that is not written as one
    (
        "x[0] - mean_others(exp(y[0])*mean_others(y[1])) - mean_others(y[1]*(y[0] - mean(y[0])))",
        0.1,
        {"n": 3, "d": 2},
        {"architecture": "performer"},
    ),
    # a quotient of means whose numerator has weights that are no float64 numbers
    ("mean(exp(y)*y)/mean(exp(y))", 0.02, {"n": 3, "box": "1/3:2/3"}, {"architecture": "transformer"}),
    # a factor e^{-x²} that numerator and denominator share
    (
        "sum(exp(-1.1*norm2(x-y))*y)/sum(exp(-1.1*norm2(x-y)))",
        5e-3,
        {"n": 2, "d": 2, "box": "-1:1"},
        {"architecture": "performer"},
    ),
    # nothing is left of a kernel
    ("mean(exp(-x*y)*(i-j)**2)", 0.01, {"n": 1, "positions": True}, {"architecture": "linformer"}),
    # orbits and an error of the interpolant that are no larger than rounding
    ("total(x[1])", 0.119, {"n": 7, "d": 2, "box": "-3:-2.5"}, {"route": "symmetric"}),
    (
        "sum_others(y-x)*(mean_others(y/(0.689+(x-y)**2))/mean_others(1/(0.689+(x-y)**2)))"
        "*(sum_others(x-y) + sum(exp(-0.89*y)*tanh(y)))",
        4.461497083037079e-09,
        {"n": 2, "box": "-0.3:2"},
        {"route": "symmetric"},
    ),
]


@pytest.mark.parametrize(("source", "domain", "how"), EXACT)
def test_what_is_exact_is_verified(source, domain, how, tmp_path):
    made = sumformer.construct(source, 1e-3, **domain, **how)
    assert made.certificate.total < 1e-30
    made.save(tmp_path)
    assert sumformer.verify(tmp_path, attack=False).proof.failures == ()
    assert sumformer.verify(tmp_path).verified


@pytest.mark.parametrize(("source", "epsilon", "domain", "how"), BOUNDED)
def test_what_is_built_is_verified(source, epsilon, domain, how, tmp_path):
    sumformer.construct(source, epsilon, **domain, **how).save(tmp_path)
    assert sumformer.verify(tmp_path, attack=False).proof.failures == ()


def test_nested_reductions_are_named_while_others_are(tmp_path):
    """The checker comes to a verdict; on so small a box it counts more rounding than is claimed."""
    source = (
        "x[0] - mean_others(log(1.81 + exp(-0.35*y[0])**2)*mean_others(y[1])) - mean_others(y[1]*(y[0] - mean(y[0])))"
    )
    sumformer.construct(source, 1e-5, n=3, d=2, box="0:1e-9", architecture="performer").save(tmp_path)
    assert sumformer.verify(tmp_path, attack=False).proof.bound < 1e-8


@pytest.mark.parametrize("architecture", ["sumformer", "transformer"])
@pytest.mark.parametrize("source", ["3", "0", "cat(1, 2)"])
def test_a_constant_has_no_route_symmetric(source, architecture):
    with pytest.raises(RefusedError, match="constant"):
        sumformer.construct(source, 1e-3, n=3, route="symmetric", architecture=architecture)


@pytest.mark.parametrize("how", [{"route": r} for r in ("sums", "symmetric", "grid")] + [{"architecture": "linformer"}])
def test_no_sequence_at_all(how):
    made = sumformer.construct("x*mean(y)", 0.3, n=3, **how)
    assert made(torch.empty(0, 3, 1, dtype=torch.float64)).shape == (0, 3, 1)

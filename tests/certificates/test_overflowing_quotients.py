"""Σ a(x) b K g / Σ a(x) b K: a cancels in the quotient, and yet the computed sums may overflow."""

from __future__ import annotations

import pytest
import torch
from tampered import Tampered

from sumformer.certificates.attack import attack, violation
from sumformer.certificates.checker import check
from sumformer.errors import RefusedError
from sumformer.theorems.construction import construct, load

LARGE = "sum(exp({0}+x)*(3+y)*exp(x*y))/sum(exp({0}+x)*exp(x*y))"


@pytest.mark.parametrize(
    ("source", "dtype", "tokens"),
    [
        (LARGE.format(704), "float64", "..1000"),
        (LARGE.format(704).replace("sum", "sum_others"), "float64", "2..1000"),
        (LARGE.format(708).replace("sum", "mean"), "float64", "..1000"),
        (LARGE.format(84), "float32", "..1000"),
        ("sum(exp(70*(1+x/100))*y*exp(x*y))/sum(exp(70*(1+x/100))*exp(x*y))", "float32", "..1073741824"),
    ],
    ids=["sums", "others", "means", "float32", "many tokens"],
)
def test_sums_that_may_overflow_are_refused(source, dtype, tokens):
    with pytest.raises(RefusedError):
        construct(source, 0.1, n=tokens, dtype=dtype)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "net"
    construct(LARGE.format(690), 1e-3, n="..1000").save(folder)
    return folder


def test_large_sums_that_fit_are_certified(large):
    made = load(large)
    assert check(large).verified
    assert bool(made(torch.rand(1, 1000, 1, dtype=torch.float64)).isfinite().all())


def test_a_claim_of_more_tokens_than_fit_is_not_verified(tmp_path, large):
    forged = Tampered(large, tmp_path / "forged").edit("certificate", lambda c: c.update(tokens="..1000000000"))
    found = check(forged.folder)
    assert not found.verified
    assert any("overflow" in failure for failure in found.failures)


def test_an_attack_sees_what_overflows_in_the_target_too(tmp_path, large):
    forged = Tampered(large, tmp_path / "forged").edit("certificate", lambda c: c.update(tokens="..1000000000"))
    made = load(forged.folder)
    found = attack(made.target, made.network, seconds=2.0, effort="quick")
    assert found.worst == float("inf")
    assert violation(found, made.certificate.total) == (True, float("inf"))

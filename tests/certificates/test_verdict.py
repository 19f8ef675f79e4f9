"""What every checker asks of terms and parts: names and kinds, sums, and that whatever stops a proof is a failure."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sumformer.certificates.certificate import Certificate, ErrorTerm
from sumformer.certificates.checker.json_values import fraction, integer, multi_index, number
from sumformer.certificates.checker.verdict import (
    assumption_failures,
    claim_failures,
    claims,
    finite_sum,
    key_failures,
    proved_verdict,
    proving,
    sum_above,
    term_failures,
    verdict,
)
from sumformer.certificates.checker.verification import Unproved

KINDS = {"remainder": "proved", "rounding": "rounding"}


def certificate(*bounds: float, **fields: Any) -> Certificate:
    terms = tuple(ErrorTerm(n, k, b) for (n, k), b in zip(KINDS.items(), bounds, strict=False))  # type: ignore[arg-type]
    given = {"total": sum(bounds), "epsilon": 1.0, "terms": terms, "assumptions": ("IEEE",), **fields}
    named = {"target": "mean(y)", "d": 1, "box": "0:1", "tokens": "3", "arithmetic": "float64", "route": "sums"}
    return Certificate(**named, latent_dimension=1, constants={}, **given)


def test_consistent_terms_have_no_failure():
    assert term_failures(certificate(0.5, 0.25), KINDS) == []
    assert term_failures(certificate(0.5), KINDS) == []  # a term of 0 may be left out
    assert assumption_failures(certificate(), "IEEE") == []


@pytest.mark.parametrize(
    ("c", "word"),
    [
        (certificate(0.5, -0.25), "not a number"),
        (certificate(math.nan), "not a number"),
        (certificate(0.5, terms=(ErrorTerm("remainder", "rounding", 0.5),)), "kind 'rounding'"),
        (certificate(0.5, terms=(ErrorTerm("luck", "proved", 0.5),)), "unknown name"),
        (certificate(0.5, terms=(ErrorTerm("rounding", "rounding", 0.25),) * 2), "twice"),
        (certificate(0.5, total=0.4), "is not the sum"),
        (certificate(0.5, 1e-15, total=0.5), "is not the sum"),
        (certificate(0.5, epsilon=0.4), "epsilon"),
        (certificate(0.5, epsilon=math.inf), "epsilon"),
    ],
)
def test_what_contradicts_itself_is_named(c: Certificate, word: str):
    assert any(word in failure for failure in term_failures(c, KINDS))


def test_an_assumption_that_is_not_named():
    assert "4 ulp" in assumption_failures(certificate(), "IEEE", "4 ulp")[0]


def test_an_assumption_that_is_none_of_the_proof():
    assert "is none of the proof" in assumption_failures(certificate(assumptions=("IEEE", "luck")), "IEEE")[0]
    assert "twice" in assumption_failures(certificate(assumptions=("IEEE", "IEEE")), "IEEE")[0]


def test_constants_are_those_that_are_compared():
    assert key_failures({"cells": 1, "why": "so"}, {"cells"}) == key_failures({"cells": 1}, {"cells"}, {"p"}) == []
    assert "cells missing" in key_failures({}, {"cells"})[0]
    assert "unknown luck" in key_failures({"cells": 1, "luck": 1}, {"cells"})[0]


def test_more_than_claimed_is_named_with_the_worst_term():
    c, found = certificate(0.5, 0.25), {"remainder": 0.6, "rounding": 0.2}
    exact = claim_failures(c, claims(c), found, lambda _, claim: claim)
    assert len(exact) == 2
    assert "remainder" in exact[0]
    assert exact[1].endswith("most of it in the remainder")
    assert len(claim_failures(c, claims(c), found, lambda _, claim: 2 * claim)) == 1  # the total has no room
    assert claim_failures(c, claims(c), {"remainder": math.nan}, lambda _, claim: claim)


@pytest.mark.parametrize("error", [Unproved("why"), ZeroDivisionError(), KeyError("a"), RecursionError(), TypeError()])
def test_what_stops_a_proof_is_a_failure(error: Exception):
    failures: list[str] = []
    with proving(failures):
        raise error
    assert len(failures) == 1
    assert failures[0].startswith("proof: ")


def test_parts_are_infinite_where_no_proof_is_finished():
    c, names = certificate(0.5, 0.25), tuple(KINDS)
    found = proved_verdict(c, names, [], True, lambda: ((0.5, 0.125), []), 0.0, sum_above)
    assert found.verified
    assert found.terms == (("remainder", 0.5), ("rounding", 0.125))
    assert found.bound == math.nextafter(0.625, 1)
    stopped = proved_verdict(c, names, [], True, lambda: ((1 / 0, 0.0), []), 0.0)
    not_begun = proved_verdict(c, names, ["why"], False, lambda: ((0.0, 0.0), []), 0.0)
    assert [stopped.bound, not_begun.bound] == [math.inf, math.inf]
    assert not_begun.failures == ("why",)
    assert not stopped.verified
    assert not not_begun.verified


def test_a_bug_is_not_a_failure_of_the_proof():
    with pytest.raises(AssertionError), proving([]):
        raise AssertionError


def test_sums_that_are_not_finite_are_infinite():
    assert finite_sum([0.1] * 10) == 1.0
    assert sum_above([0.0, 0.0]) == 0.0
    assert finite_sum([1.0, math.nan]) == finite_sum([1e308, 1e308]) == math.inf


@pytest.mark.parametrize(
    ("bound", "failures", "verified"),
    [(0.75, [], True), (0.76, [], False), (math.nan, [], False), (0.1, ["x"], False)],
)
def test_verified_needs_no_failure_and_the_bound(bound: float, failures: list[str], verified: bool):
    found = verdict(certificate(0.5, 0.25), {"remainder": bound}, bound, failures, 0.0)
    assert found.verified is verified
    assert found.terms[0][0] == "remainder"
    assert len(found.assumptions) == 2


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (integer, True),
        (integer, 2**40),
        (integer, 1.0),
        (number, math.inf),
        (number, 10**400),
        (number, "1"),
        (fraction, 0.5),
        (fraction, "1e5"),
        (fraction, "9" * 6000),
        (multi_index, [-1]),
        (multi_index, (1,)),
    ],
)
def test_values_of_another_type_or_size_are_refused(read: Any, value: Any):
    with pytest.raises(ValueError, match="expected"):
        read(value)

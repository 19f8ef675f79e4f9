"""f(PX) = P f(X), or f(PX) = f(X): within rounding where a module claims it, clearly false where it does not."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn import Hardmax, SoftmaxAttention
from sumformer.testing import TOLERANCE, assert_equivariant, equivariance_error

from .modules import CASES, Case, over_cases, tokens

DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def error_of(case: Case, dtype: torch.dtype, training: bool = False, n: int = 12) -> float:
    return equivariance_error(case.make(dtype).train(training), tokens(n, dtype))


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@over_cases()
def test_the_claim_is_what_is_measured(case, dtype, training):
    module = case.make(dtype).train(training)
    assert module.equivariant == case.equivariant
    assert module.invariant == case.invariant
    error = equivariance_error(module, tokens(12, dtype))
    if case.equivariant:
        assert error <= TOLERANCE[dtype]
    else:
        assert error > 10 * TOLERANCE[dtype]


@over_cases(case for case in CASES if case.equivariant)
def test_longer_sequences(case):
    assert_equivariant(case.make(torch.float64), tokens(60))


@over_cases(case for case in CASES if not case.equivariant)
def test_one_token_has_only_one_order(case):
    assert error_of(case, torch.float64, n=1) == 0


def test_hardmax_is_measured_where_it_has_a_choice():
    """The largest logit is unique, and not the same token for all, for most queries: no tie hides a mistake."""
    layer = next(case for case in CASES if case.name == "hardmax").make(torch.bfloat16)
    assert isinstance(layer, SoftmaxAttention)
    assert isinstance(layer.normaliser, Hardmax)
    x = tokens(12, torch.bfloat16)
    logits = layer.queries(x) @ layer.keys(x).mT
    assert (layer.normaliser(logits) == 1).any(-1).float().mean() > 0.9
    assert len(logits.argmax(-1).unique()) > 2

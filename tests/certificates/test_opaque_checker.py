"""check of a function without a formula: L·r, with the L that the certificate names as an assumption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tampered import put, rewrite
from torch import Tensor

import sumformer
from sumformer.certificates.checker import check
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.opaque import opaque_target


def spread(X: Tensor) -> Tensor:
    return (X - X.mean(1, keepdim=True)).abs()


def test_the_assumed_modulus_is_the_one_that_is_named(tmp_path: Path) -> None:
    """L/100 with ε/100, while the assumptions go on to name L."""
    f = opaque_target(spread, Tokens(3, 3), 1, Box.parse("0:1", 1), 1.0)
    sumformer.construct(f, 0.05).save(tmp_path)
    assert check(tmp_path).verified

    def smaller(c: dict[str, Any]) -> None:
        c["constants"]["assumed_lipschitz"] /= 100
        for entry, key in (*((term, "bound") for term in c["terms"]), (c, "total"), (c, "epsilon")):
            entry[key] /= 100

    rewrite(tmp_path / "certificate.json", smaller)
    assert not check(tmp_path).verified


def _centred(X: torch.Tensor) -> torch.Tensor:
    return X - X.mean(1, keepdim=True)


def test_an_assumed_constant_beyond_float64_is_none(tmp_path: Path) -> None:
    sumformer.construct(sumformer.target(_centred, n=2, lipschitz=1.0), 0.3).save(tmp_path)
    rewrite(tmp_path / "certificate.json", put("constants", "assumed_lipschitz")(10**400))
    assert not check(tmp_path).verified


def test_a_function_is_not_certified_to_any_error(tmp_path: Path) -> None:
    def spread(X: torch.Tensor) -> torch.Tensor:
        return (X - X.mean(1, keepdim=True)).abs()

    sumformer.construct(sumformer.target(spread, n=3, lipschitz=2.0), 0.3).save(tmp_path)
    assert check(tmp_path).verified
    rewrite(tmp_path / "certificate.json", lambda data: data.update(epsilon=float("inf")))
    assert not check(tmp_path).verified

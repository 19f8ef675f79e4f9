"""False certificates and false "verified" found in a second review: each must be refused, or its bound must hold."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tampered import put, rewrite, sign
from torch import Tensor

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import SumformerError
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.opaque import opaque_target

# ---- compiled networks: weights that cancel leave the roundings of what they were made of

CANCELLING: list[tuple[str, float, Callable[[Fraction, Fraction], Fraction]]] = [
    ("abs(mean(y)+x+33333.3-33333.1)", 1e-10, lambda x, m: m + x + Fraction(1, 5)),
    ("abs(mean(y)+x+3333333333.3-3333333333.1)", 1e-2, lambda x, m: m + x + Fraction(1, 5)),
    ("abs(3333333333.3*x-3333333333.1*x+mean(y))", 1e-2, lambda x, m: m + x / 5),
    ("abs(mean(y)-x)+(x+3333333333.3-3333333333.1)", 1e-2, lambda x, m: abs(m - x) + x + Fraction(1, 5)),
]


@pytest.mark.parametrize(("source", "epsilon", "exact"), CANCELLING)
def test_weights_that_cancel_keep_their_rounding(
    source: str, epsilon: float, exact: Callable[[Fraction, Fraction], Fraction]
) -> None:
    c = sumformer.construct(source, epsilon, n=3, architecture="transformer")
    X = torch.rand(50, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = c(X)
    for row, values in zip(X[..., 0].tolist(), found[..., 0].tolist(), strict=True):
        mean = sum(map(Fraction, row), start=Fraction(0)) / 3
        for x, value in zip(row, values, strict=True):
            assert abs(Fraction(value) - exact(Fraction(x), mean)) <= Fraction(c.certificate.total)


# ---- positions


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tabulated") / "c"
    sumformer.construct("sum(y*max(0, 1-abs(j-i-1)))", 1e-3, n=4, positions=True).save(folder)
    return folder


WRITTEN = [
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))", True),
    ("sum(y[0]*max(0, 1 - abs(x[1] + 1 - y[1])))", True),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))*(1 + (x[1]-1)*(x[1]-2)*(x[1]-3)*(x[1]-4))", True),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1))) + 1e-9", False),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1])))", False),
    ("mean(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))", False),
    ("x[0]", False),
    (7, False),
]


@pytest.mark.parametrize(("written", "same"), WRITTEN)
def test_a_target_written_otherwise_must_be_the_one_that_is_proved(
    tabulated: Path, tmp_path: Path, written: object, same: bool
) -> None:
    """The certificate speaks of a table over the positions; `written` is what was asked for, and what `load` gives."""
    for file in tabulated.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rewrite(tmp_path / "certificate.json", lambda c: c["constants"].update(written=written))
    assert check(tmp_path).verified is same


def test_positions_of_a_network_that_does_not_know_them(tmp_path: Path) -> None:
    """Taken out of its `Positioned`, the network takes any number for a position, and cells would not bound that."""
    sumformer.construct("sum(abs(x-y)*max(0, j-i))", 0.3, n=3, positions=True, route="grid").save(tmp_path)
    assert check(tmp_path).verified
    bare = sumformer.load(tmp_path).network.network
    bare.save_pretrained(tmp_path)
    assert not check(sign(tmp_path)).verified


# ---- functions without a formula


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


# ---- deep networks


def test_a_layer_before_the_attention_that_writes_beyond_the_tokens(tmp_path: Path) -> None:
    """With more outputs than coordinates, a layer among the quantising ones could add 1000 to an output, unseen."""
    options: dict[str, Any] = {"n": 2, "architecture": "deep-transformer", "p": 1}
    sumformer.construct("cat(x, mean(y))", 0.9, **options).save(tmp_path)
    assert check(tmp_path).verified
    tensors = load_file(tmp_path / "model.safetensors")
    for key in ("W_1", "b_1", "W_2"):
        old = tensors[f"layers.0.{key}"]
        tensors[f"layers.0.{key}"] = np.concatenate([np.zeros((1, *old.shape[1:])), old])
    tensors["layers.0.b_1"][0, 0] = 1.0
    tensors["layers.0.W_2"][0, 1, 0] = 1000.0
    save_file(tensors, tmp_path / "model.safetensors")
    rewrite(tmp_path / "config.json", put("layers", "modules", 0, "layers")(lambda count: count + 1))
    assert not check(sign(tmp_path)).verified


def test_a_compiled_network_of_sequences_is_checked(tmp_path: Path) -> None:
    sumformer.construct("x*mean(y)*i", 1e-2, n=3, positions=True, architecture="transformer").save(tmp_path)
    assert check(tmp_path).verified


def test_a_target_below_float64_is_refused_in_words() -> None:
    with pytest.raises(SumformerError, match="0 everywhere"):
        sumformer.construct("exp(-1e6*(1+mean(y)*x))", 1e-5, n=2, route="symmetric")

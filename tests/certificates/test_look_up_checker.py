"""check of a `LookUpTransformer`: honest files verify; a change beyond what is claimed does not, whatever its hash."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tampered import Change, Copy, Sample, Samples, accepted, put

from sumformer.certificates.checker import check
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.targets import parse, target
from sumformer.targets.lipschitz import lipschitz_bound

Tensors = dict[str, np.ndarray]
OPTIONS = {"n": 3, "architecture": "linformer", "route": "grid"}
SAMPLES: dict[str, Sample] = {
    "step": ("abs(x - mean(y))", 0.1, {"options": {"activation": "step"}}),
    "relu": ("abs(x - mean(y))", 0.4, {"options": {"activation": "relu"}}),
}


@pytest.mark.parametrize("activation", ["step", "relu"])
def test_honest_files_verify(samples: Samples, activation: str):
    found = check(samples(activation))
    assert found.verified, found.failures
    assert found.bound <= found.claimed <= found.epsilon


@pytest.mark.parametrize("activation", ["step", "relu"])
def test_every_weight_counts(copy: Copy, activation: str):
    """One entry of every tensor moved, hashes rewritten: each is found, but for E, whose logits are all 0.

    By 0.7, but thresholds between far keys by more: within their gap they may lie anywhere.
    """
    table = f"blocks.{2 if activation == 'step' else 4}.feed_forward.b_1"
    original = copy(activation)
    missed = []

    def names() -> list[str]:
        from safetensors.numpy import load_file

        return [k for k, v in load_file(original.folder / "model.safetensors").items() if v.dtype == np.float64]

    for name in names():
        for place in (0, -1):

            def change(tensors: Tensors, name: str = name, place: int = place) -> None:
                tensors[name].ravel()[place] += 1e4 if name == table else 0.7

            changed = copy(activation).weights(change).folder
            missed += [name] if accepted(changed) else []
    assert {name.rsplit(".", 1)[-1] for name in missed} == {"E"}


def _middle(name: str, factor: float) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name][len(tensors[name]) // 2] *= factor

    return change


@pytest.mark.parametrize(
    ("activation", "change", "why"),
    [
        ("step", _middle("blocks.0.feed_forward.b_1", 1.3), "modulus"),
        ("step", _middle("blocks.1.feed_forward.b_1", 1.5), "rounding"),
        ("step", _middle("blocks.1.feed_forward.value_2", 1.5), "whole numbers|within rounding"),
        ("step", _middle("blocks.2.feed_forward.value_2", 2.0), "rounding"),
        ("step", _middle("blocks.2.feed_forward.value_1", 1.01), "read different sums"),
        ("relu", _middle("blocks.0.feed_forward.value_1", 0.5), "proof|ramps"),
        ("relu", _middle("blocks.0.feed_forward.value_1", 1.1), "power of two"),
        ("relu", _middle("blocks.1.feed_forward.b_1", 0.9), "1 − R"),
        ("relu", _middle("blocks.4.feed_forward.value_2", 2.0), "workspace"),
    ],
)
def test_what_failed_is_named(copy: Copy, activation: str, change: Callable[[Tensors], None], why: str):
    found = check(copy(activation).weights(change).folder)
    assert not found.verified
    assert any(word in failure for failure in found.failures for word in why.split("|")), found.failures


@pytest.mark.parametrize(
    ("activation", "change"),
    [
        ("step", put("norm")("d_1")),
        ("relu", put("norm")("sup")),
        ("relu", put("norm")("d_2")),
        ("relu", put("constants", "p")(2.0)),
        ("relu", put("constants", "sup_off_ramps")(lambda old: old / 2)),
        ("relu", put("constants", "ramp_share")(lambda old: old / 2)),
        ("relu", put("constants", "ramps")(lambda old: [w / 2 for w in old])),
        ("step", put("constants", "cells")(7)),
        ("step", put("constants", "entries")(7)),
        ("step", put("constants", "lipschitz")(0.01)),
        ("step", put("architecture")("performer")),
        ("step", put("route")("sums")),
        ("step", put("target")("abs(x - 2*mean(y))")),
        ("step", put("tokens")("4")),
        ("step", put("box")("0:2")),
        ("step", put("assumptions")([])),
    ],
)
def test_false_certificates_fail(copy: Copy, activation: str, change: Change):
    assert not check(copy(activation).edit("certificate", change).folder).verified


@pytest.mark.parametrize("activation", ["step", "relu"])
def test_smaller_claims_fail(copy: Copy, activation: str):
    def change(data: dict[str, object]) -> None:
        terms: list[dict[str, float]] = data["terms"]  # type: ignore[assignment]
        terms[0]["bound"] *= 0.9
        data["total"] = sum(term["bound"] for term in terms)

    assert not check(copy(activation).edit("certificate", change).folder).verified


@pytest.mark.parametrize(
    "change",
    [
        put("activation")("relu"),
        put("layout", "mean")(1),
        put("layout", "x")([1]),
        put("n")(2),
        put("layout", "out")([]),
        put("blocks", "type")("torch.Parallel"),
    ],
)
def test_other_configurations_fail(copy: Copy, change: Change):
    assert not accepted(copy("step").edit("config", change).folder)


@pytest.mark.parametrize(
    ("source", "n", "d"),
    [("abs(x - mean(y))", 3, 1), ("max(y) - x", 2, 1), ("x*sum(y)", 3, 1), ("norm(x - mean(y))", 2, 2), ("x**2", 1, 1)],
)
def test_the_own_token_moves_too(source: str, n: int, d: int):
    """The checker's modulus of all tokens against the constructor's: two programs, one number."""
    f = target(source, n=n, d=d)
    theirs = lipschitz_bound(f, wrt="all", weights=[0.1] * d, factor=1.02)
    mine = Modulus(parse(source, d), f.box, n, np.full(d, 0.1), own=True).bound(1.02 * theirs.attained)
    assert theirs.attained * (1 - 1e-9) <= mine <= 1.03 * theirs.value
    others = Modulus(parse(source, d), f.box, n, np.full(d, 0.1)).bound(0.0)
    assert others <= mine * 1.2


def test_keys_that_underflow(copy: Copy):
    """Keys and thresholds times 2^-1060 stand to one another as before, but for rounding that is no longer relative."""

    def change(tensors: Tensors) -> None:
        for name in ("value_1", "b_1"):
            tensors[f"blocks.2.feed_forward.{name}"] *= 2.0**-1060

    found = check(copy("step").weights(change).folder)
    assert "a key lies on, or within rounding of, a step" in " ".join(found.failures)

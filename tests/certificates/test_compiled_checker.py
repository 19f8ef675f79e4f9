"""check of a `CompiledTransformer`: honest files verify; a changed weight does not, or does no harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampered import Copy, Sample, Samples, Tampered, accepted

from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError
from sumformer.theorems.construction import construct, load

GAUSS = "sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))"
SHARP = "sum(exp(-6*(x - y)**2)*y)/sum(exp(-6*(x - y)**2))"
SAMPLES: dict[str, Sample] = {
    "linear": ("x - mean(y)", 1e-1, {"n": "any", "d": 2, "architecture": "transformer"}),
    "gauss": (GAUSS, 1e-1, {"n": 3, "d": 1, "architecture": "transformer"}),
    "others": ("x*mean_others(exp(x*y/3)) + x/3", 1e-2, {"n": 3, "box": "-0.1:0.8", "architecture": "linformer"}),
    "sharp": (SHARP, 1e-1, {"n": 3, "d": 1, "architecture": "performer"}),
    "free": (GAUSS, 1e-1, {"n": "any", "d": 1, "architecture": "performer", "options": {"prefer": "depth"}}),
    "score": (
        "(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)",
        1e-1,
        {"n": 4, "d": 1, "architecture": "linformer", "options": {"k": 2, "prefer": "width"}},
    ),
    "polynomial": (
        "x*dot(x, sum_others(y)) - 0.5*sum_others(y)**2",
        1e-2,
        {"n": 3, "d": 2, "architecture": "transformer", "options": {"prefer": "depth"}},
    ),
    "kinks": ("max(x, 1.1*mean(y)) + abs(x - 0.7)", 1e-2, {"n": 2, "box": "-1:1", "architecture": "performer"}),
    "powers": (GAUSS, 1e-1, {"n": 3, "d": 1, "route": "symmetric", "architecture": "transformer"}),
}
SMALL = ("gauss", "others", "score")


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(samples: Samples, name: str):
    found = check(samples(name))
    assert found.verified, found.failures
    assert 0 < found.bound <= found.claimed <= found.epsilon
    assert math.isclose(sum(part for _, part in found.terms), found.bound, rel_tol=1e-12)


@pytest.mark.parametrize("name", ["gauss", "others", "polynomial"])
def test_the_bound_holds_where_it_is_sampled(samples: Samples, name: str):
    made, found = load(samples(name)), check(samples(name))
    assert _worst(made, made.network) <= found.bound


def _worst(made: Any, network: Any) -> float:
    """max |f − N| over random tokens and corners of the box."""
    f, generator = made.target, torch.Generator().manual_seed(0)
    unit = torch.rand(400, f.tokens.minimum, f.d, dtype=torch.float64, generator=generator)
    unit = torch.cat([unit, unit.round()])
    low = torch.tensor([float(a) for a in f.box.lower], dtype=torch.float64)
    X = low + torch.tensor([float(2 * r) for r in f.box.radius], dtype=torch.float64) * unit
    with torch.no_grad():
        return float((network(X) - f(X)).abs().nan_to_num(nan=math.inf).max())


# ---- weights


def _perturb_and_check(original: Tampered, seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    made = load(original.folder)
    tensors = {k: v.numpy().copy() for k, v in made.network.state_dict().items()}
    keys = generator.permutation([k for k in tensors if tensors[k].size and "place" not in k]).tolist()
    rejected = 0
    for i in range(count):
        key = keys[i % len(keys)]
        place = tuple(generator.integers(0, s) for s in tensors[key].shape)
        old = tensors[key][place]
        new = old + (1 + abs(old)) * (0.5, -0.03, 1e-3)[i % 3]
        original.weights(lambda data, key=key, place=place, new=new: data[key].__setitem__(place, new))
        if accepted(original.folder):
            assert _worst(made, load(original.folder).network) <= made.certificate.total, (key, place)
        else:
            rejected += 1
        original.weights(lambda data, key=key, place=place, old=old: data[key].__setitem__(place, old))
    assert rejected >= count // 2
    assert accepted(original.folder)


@pytest.mark.parametrize("name", SMALL)
def test_a_weight_that_is_changed_is_found_or_does_no_harm(copy: Copy, name: str):
    """Entries of every kind of tensor, a little or a lot: what is still verified is still true."""
    _perturb_and_check(copy(name), 0, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_many_weights_changed_one_by_one(copy: Copy, name: str):
    _perturb_and_check(copy(name), 1, 60)


MATTER = [
    ("gauss", "read_in.weight", (1, 0), 1e-2),
    ("gauss", "read_in.weight", (2, 0), 1e-9),
    ("gauss", "read_in.bias", (0,), 1e-9),
    ("gauss", "read_in.bias", (1,), 1e-1),
    ("gauss", "read_in.bias", (4,), 1e-9),
    ("gauss", "read_out.weight", (0, 0), 1e-9),
    ("gauss", "ideal.coefficients.0", (0, 0), 1e-3),
    ("gauss", "attention.W_Q.weight", (0, 1), 1e-9),
    ("gauss", "attention.W_K.weight", (1, 0), 1e-9),
    ("gauss", "attention.W_V.weight", (0, 0), 1e-9),
    ("gauss", "attention.W_O.weight", (0, 0), 1e-9),
    ("others", "attention.F", (0, 1), 1e-1),
    ("sharp", "attention.W_V.weight", "first", 1e-1),
]


@pytest.mark.parametrize(("name", "key", "place", "by"), MATTER)
def test_these_weights_matter(copy: Copy, name: str, key: str, place: Any, by: float):
    def change(data: dict[str, np.ndarray]) -> None:
        found = next(k for k in data if k.endswith(key))
        where = tuple(np.argwhere(data[found])[0]) if place == "first" else place
        data[found][where] += by

    assert not accepted(copy(name).weights(change).folder)


@pytest.mark.parametrize("name", ["gauss", "score"])
def test_b_2_beside_the_ledger_is_an_error(copy: Copy, name: str):
    """A constant on any coordinate of any block moves what stands there."""

    def change(data: dict[str, np.ndarray]) -> None:
        data["blocks.0.feed_forward.b_2"][0] = 1e-6

    assert not accepted(copy(name).weights(change).folder)


def test_entries_must_be_in_order_and_inside(copy: Copy):
    for value in (-1, 10**6):
        tampered = copy("gauss").weights(lambda d, v=value: d["blocks.0.feed_forward.place_1"].__setitem__((1, 0), v))
        with pytest.raises(FileFormatError):
            check(tampered.folder)


def test_an_unknown_tensor_fails(copy: Copy):
    found = check(copy("gauss").weights(lambda d: d.__setitem__("extra", np.zeros(2))).folder)
    assert not found.verified
    assert "unknown tensor" in " ".join(found.failures)


# ---- targets

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
    c = construct(source, epsilon, n=3, architecture="transformer")
    X = torch.rand(50, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = c(X)
    for row, values in zip(X[..., 0].tolist(), found[..., 0].tolist(), strict=True):
        mean = sum(map(Fraction, row), start=Fraction(0)) / 3
        for x, value in zip(row, values, strict=True):
            assert abs(Fraction(value) - exact(Fraction(x), mean)) <= Fraction(c.certificate.total)


NESTED = [
    ("mean(y*mean(y))", "0:1"),  # the square of a reduction
    ("mean((y-mean(y))**2)", "0:1e-9"),  # all values are near each other
    ("mean(exp(y-mean(y)))", "0:1e-9"),
    ("sqrt(1+mean(y))*log(2+mean(y**2))+log(2+mean(y))", "0:1e-9"),
    ("sum(exp(-(x-y)**2)*(y-mean(y)))/sum(exp(-(x-y)**2))", "0:1"),  # an own factor with a reduction
]


@pytest.mark.parametrize(("source", "box"), NESTED)
def test_nested_targets_verify_compiled(source: str, box: str, tmp_path: Path) -> None:
    construct(source, 0.01, n=5, box=box, architecture="performer").save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def test_a_compiled_network_of_sequences_is_checked(tmp_path: Path) -> None:
    construct("x*mean(y)*i", 1e-2, n=3, positions=True, architecture="transformer").save(tmp_path)
    assert check(tmp_path).verified

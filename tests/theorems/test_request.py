"""What is asked of `construct` is checked first: one typed error that says what was expected and what came."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import sumformer
from sumformer.errors import InputError, RefusedError
from sumformer.targets.gallery import GALLERY

F = "x - mean(y)"
NO_EPSILON = ["a", "0.1", None, True, -1, 0, math.nan, math.inf, -math.inf, 1j, [1], 10**400, Decimal("0.1")]
NO_EPSILON += [torch.tensor(0.1), torch.ones(2), np.array([0.1, 0.2])]


@pytest.mark.parametrize("epsilon", NO_EPSILON, ids=lambda v: repr(v)[:12])
def test_epsilon_is_a_number_above_0(epsilon: Any):
    with pytest.raises(InputError, match=r"expected a number 0 < ε < ∞, as 1e-3, got"):
        sumformer.construct(F, epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 8), np.float32(0.125), 0.125], ids=repr)
def test_numbers_of_other_kinds_become_floats(epsilon: Any, tmp_path):
    made = sumformer.construct(F, epsilon)
    made.save(tmp_path)
    assert type(made.certificate.epsilon) is float
    assert sumformer.load(tmp_path).certificate.epsilon == 0.125


WRONG: list[tuple[dict[str, Any], str]] = [
    *(({"n": n}, r"tokens.*: expected") for n in (0, -1, 2.5, 3.0, "x", "", True, None, [3], 10**12)),
    *(({"d": d}, r"expected a token width d from 1") for d in (0, -1, 2.5, 2.0, "3", True, None, 10**12)),
    *(({"box": box}, r"target: expected box as '-1:1'") for box in (0, 1.5, {0: 1}, (0, 1, 2), [(0, 1), 2], True)),
    *(({"dtype": t}, r"expected dtype in \('float64'") for t in ("float16", None, torch.float16, 5)),
    *(({"architecture": a}, r"expected architecture in") for a in ("mlp", None, 5, ["a"])),
    *(({"route": r}, r"expected route in") for r in ("short", 5, ["a"])),
    *(({"p": p, "architecture": "deep-transformer", "n": 2}, r"1 ≤ p < ∞") for p in ("2", 0.5, math.nan, True, [1])),
    *(({"options": o, "architecture": "transformer"}, r"expected options by name") for o in ("k", 5, ["k"], {1: 2})),
    *(
        ({"options": {"k": k}, "architecture": architecture, "n": 2}, f"{architecture}: expected integers ≥ 1, got k =")
        for architecture in ("linformer", "performer")
        for k in ("a", 0.5, 0, True)
    ),
    *(({"positions": v, "n": 2}, r"expected positions True or False") for v in ("yes", 1, None)),
    ({"colour": 1, "size": 2}, r"does not know colour, size; a domain is given by n, d, box, positions, lipschitz"),
]


@pytest.mark.parametrize(("asked", "words"), WRONG, ids=lambda v: str(v)[:40])
def test_everything_else_is_what_it_should_be(asked: dict[str, Any], words: str):
    with pytest.raises(InputError, match=words):
        sumformer.construct(F, 0.1, **asked)


def test_a_target_with_a_domain_of_its_own_takes_no_other():
    with pytest.raises(InputError, match=r"a Target has its own domain; give n, d to target\(…\)"):
        sumformer.construct(sumformer.target(F), 0.1, n=3, d=1)
    with pytest.raises(InputError, match="does not know colour"):
        sumformer.construct(sumformer.target(F), 0.1, colour=3)


@pytest.mark.parametrize("d", [1, 3, 0, "a", None])
def test_the_name_of_a_target_is_answered_by_its_formula(d):
    for name in GALLERY:
        with pytest.raises(InputError, match=f"{name} is the name of a target in the gallery; give its formula"):
            sumformer.construct(name, 1e-3, d=d)


@pytest.mark.parametrize("route", ["sums", "symmetric", "grid"])
def test_a_box_without_numbers_is_refused(route):
    with pytest.raises(RefusedError, match="holds no float32 number"):
        sumformer.construct("x*mean(y)", 0.1, n=3, box="0.1:0.100000001", dtype="float32", route=route)
    assert (
        sumformer.construct("x*mean(y)", 0.1, n=3, box="0.1:0.2", dtype="float32", route=route).certificate.total <= 0.1
    )

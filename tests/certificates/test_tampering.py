"""Every field of every kind of certificate, changed one at a time: what a reader sees is checked, or a remark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tampered import Sample, Tampered, accepted

from sumformer.certificates.certificate import NOT_CLAIMED
from sumformer.nn import patterns
from sumformer.targets import target


def spread(X: torch.Tensor) -> torch.Tensor:
    return (X - X.mean(1, keepdim=True)).abs()


GAUSS = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
LOOK_UP = {"n": 2, "route": "grid"}
STRIDED = {"architecture": "sparse-transformer", "n": 4, "p": 2, "pattern": patterns.Strided(2)}
SAMPLES: dict[str, Sample] = {
    "exact": ("x - mean(y)", 1e-6, {}),
    "sums": ("mean(exp(x*y)/(2 + x*y))", 1e-3, {}),
    "grid": ("abs(x - max(y))", 0.2, {"n": 2, "route": "grid"}),
    "places": ("i*x - mean(j*y)", 1e-3, {"n": 2, "positions": True}),
    "grid of places": ("i*abs(x - max(j*y))", 1.0, {"n": 2, "positions": True, "route": "grid"}),
    "opaque": (target(spread, n=3, lipschitz=2.0), 0.3, {}),
    "linformer": ("x*mean_others(exp(x*y/3))", 1e-1, {"n": 3, "architecture": "linformer"}),
    "performer": ("x - mean(y)", 1e-1, {"n": "any", "architecture": "performer"}),
    "step": ("abs(x - mean(y))", 0.2, {**LOOK_UP, "architecture": "transformer", "options": {"activation": "step"}}),
    "relu": ("abs(x - mean(y))", 0.6, {**LOOK_UP, "architecture": "linformer", "options": {"activation": "relu"}}),
    "deep": ("x + mean(y)", 0.5, {"architecture": "deep-transformer", "n": 2}),
    "sequence": ("i*x - mean(j*y)", 0.3, {"architecture": "deep-transformer", "n": 2, "positions": True}),
    "sparse": ("x + mean(y)", 0.7, {"architecture": "sparse-transformer", "n": 3}),
    "zero": ("x + mean(y)", 3.0, {"architecture": "deep-transformer", "n": 2}),
}
LONGER: dict[str, Sample] = {
    "symmetric": (GAUSS, 1e-2, {"n": 2, "route": "symmetric"}),
    "kernel of places": ("mean(y/(i + j))", 1e-3, {"n": 3, "positions": True}),
    "transformer": (GAUSS, 1e-1, {"n": 3, "architecture": "transformer"}),
    "compiled power sums": (GAUSS, 1e-1, {"n": 2, "route": "symmetric", "architecture": "transformer"}),
    "strided": ("max(y) - x", 0.75, STRIDED),
}

# what may be accepted, and why it is no lie; "path how"
STILL_TRUE = {
    r"epsilon (up|down)": "the total is still below it",
    r"(architecture|norm|version|not_claimed) gone": "left out, they are what they were",
    rf"constants\.({'|'.join(NOT_CLAIMED)}) .*": "remarks, which the certificate says are not claimed",
    r"tokens text": "these compiled networks take any n, and the proof was carried out for the new one",
    r"terms\.\d+\.bound up 5e-324": "the least number above 0: one more changes no sum",
    r"constants\.(ideal\.)?kernels\.\d+\.range\.(0 down|0 negative [^-].*|1 up)": "wider; narrower ones are refused",
    r"constants\.(ideal\.)?(kernels\.\d+\.)?dropped up": "a larger bound, which nothing uses; smaller ones are refused",
    r"constants\.(ideal\.)?kept up": "an orbit no larger than rounding may count or not; fewer are refused",
    r"constants\.parts up": "the proof goes by it: with more parts it holds as well",
    r"constants\.ideal\.grid\..*": "the proof goes by it: with other points it holds as well",
    r"constants\.(ideal\.)?coefficients (up|down)": "a rounding of 1e-16, which two ways of counting leave open",
}


def tamperings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """(path, how) for every value within."""
    if isinstance(value, dict):
        yield path, "extra"
    elif isinstance(value, list):
        yield from ((path, how) for how in ("long", *(["short"] if value else [])))
    elif isinstance(value, bool) or value is None:
        yield path, "flip"
    else:
        yield from ((path, how) for how in (("text",) if isinstance(value, str) else ("up", "down", "negative")))
    if path and isinstance(path[-1], str):
        yield path, "gone"
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from tamperings(child, (*path, key))


def _scaled(old: float, by: float, step: int) -> float:
    new = type(old)(old * by)
    return new if new != old else old + step


CHANGES: dict[str, Callable[[Any], Any]] = {
    "extra": lambda old: {**old, "made_up": 1},
    "long": lambda old: old + (old[-1:] or [1]),
    "short": lambda old: old[:-1],
    "flip": lambda old: not old,
    "text": lambda old: old + "1",
    "up": lambda old: _scaled(old, 1.5, 1),
    "down": lambda old: _scaled(old, 1 / 1.5, -1),
    "negative": lambda old: -old or -1,
}


def tampered(data: Any, path: tuple[Any, ...], how: str) -> Any:
    """A copy with one value changed; numbers by a half."""
    if not path:
        return CHANGES[how](data)
    key, *rest = path
    if how == "gone" and not rest:
        return {k: v for k, v in data.items() if k != key}
    new = dict(data) if isinstance(data, dict) else list(data)
    new[key] = tampered(data[key], tuple(rest), how)
    return new


def lies_accepted(folder: Path, hows: set[str]) -> list[str]:
    """Tamperings that the checker takes, and that are not true all the same."""
    file = folder / "certificate.json"
    original = file.read_text()
    data, missed, tried = json.loads(original), [], 0
    for path, how in tamperings(data):
        if how not in hows:
            continue
        tried += 1
        file.write_text(json.dumps(tampered(data, path, how)))
        words = ".".join(map(str, path)) + f" {how}"
        if accepted(folder):
            value = data
            for key in path:
                value = value[key]
            known = (words, f"{words} {value}")
            missed += [] if any(re.fullmatch(rule, w) for rule in STILL_TRUE for w in known) else [words]
    file.write_text(original)
    assert accepted(folder), "the file itself"
    assert tried > 20
    return missed


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_that_is_shown_can_be_changed(name: str, copy: Any):
    assert lies_accepted(copy(name).folder, {"up", "text", "short", "flip"}) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SAMPLES, *LONGER])
def test_nothing_can_be_changed_added_or_left_out(name: str, built: Any, tmp_path: Path):
    saved = Tampered(built({**SAMPLES, **LONGER}[name]), tmp_path / "copy")
    assert lies_accepted(saved.folder, {*CHANGES, "gone"}) == []


def test_the_fields_that_are_not_claimed_are_named_in_the_file(copy: Any):
    saved = copy("exact")
    data = json.loads((saved.folder / "certificate.json").read_text())
    assert data["not_claimed"] == list(NOT_CLAIMED)
    assert data["constants"].keys() - set(NOT_CLAIMED) == {"kernels"}

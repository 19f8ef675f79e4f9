"""False certificates, folders that cannot be loaded, and errors of Python found in a fifth review."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tampered import Change, Copy, Sample, put, rewrite

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.positions.written import written_failures
from sumformer.errors import FileFormatError
from sumformer.targets.target import target
from sumformer.theorems.verification import examine

SAMPLES: dict[str, Sample] = {
    "places": ("sum(max(0, min(1, i-j+1))*y)/i", 1e-3, {"n": 4, "positions": True}),
    "sums": ("mean(y)", 1e-3, {"n": 2}),
    "look-up": ("abs(x - mean(y))", 0.2, {"n": 2, "route": "grid", "architecture": "transformer"}),
    "deep": ("x*mean(y)", 0.4, {"n": 2, "architecture": "deep-transformer"}),
    "sparse": ("x*mean(y)", 0.4, {"n": 2, "architecture": "sparse-transformer"}),
    "performer": ("x*mean(y)", 0.4, {"n": 2, "architecture": "performer"}),
}

# ---- f is defined nowhere


@pytest.mark.parametrize(
    "more",
    [
        "0*log(x[1] - 9)",
        "0*log(-2)",
        "0/x[0]",
        "0*(x[0] - 1/2)**(-1)",
        "sqrt(1 - x[1]) - sqrt(1 - x[1])",  # exists at i = 1
        "x[0]**(-0.5) - x[0]**(-0.5)",
    ],
)
def test_what_cancels_must_exist(copy: Copy, more: str) -> None:
    """Canonical forms cancel partial functions; "verified", with an attack error of nan, was the answer."""
    found = check(copy("places").edit("certificate", put("constants", "written")(lambda old: f"{old} + {more}")).folder)
    assert not found.verified
    assert "is not shown to exist at i = " in found.failures[0]


@pytest.mark.parametrize("body", ["0*log(y[1] - x[1])", "0/(y[0] + y[1] - x[1])"])
def test_what_cancels_in_a_sum_must_exist_at_all_pairs(copy: Copy, body: str) -> None:
    def change(old: str) -> str:
        assert "*y[0])" in old
        return old.replace("*y[0])", f"*y[0] + {body})")

    found = check(copy("places").edit("certificate", put("constants", "written")(change)).folder)
    assert not found.verified
    assert ", j = " in found.failures[0]


@pytest.mark.parametrize("more", ["0*log(x[1])", "sqrt(x[0]) - sqrt(x[0])", "0*log(1 + {f})", "0/(x[0] + x[1])"])
def test_what_exists_may_cancel(copy: Copy, more: str) -> None:
    written = put("constants", "written")(lambda f: f"{f} + {more.format(f=f)}")
    found = check(copy("places").edit("certificate", written).folder)
    assert found.verified, found.failures


@pytest.mark.parametrize(
    "source",
    [
        "sum_others(y/(i-j))",  # there is no i = j
        "mean(abs(i-j)*log(1 + y - y**2))",  # intervals alone say 1 + y − y² ≥ 0
        "mean(abs(i-j)/((1 + y - y**2)*(i+j)))",
        "sqrt(1 + x - x**2)*mean(y/(abs(i-j)+1))",
    ],
)
def test_roots_and_ratios_beside_tables_verify(source: str, tmp_path: Path) -> None:
    c = sumformer.construct(source, 1e-3, n=3, positions=True)
    assert "written" in c.certificate.constants
    c.save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def test_values_that_another_proof_answers_for_are_not_equal() -> None:
    """log A and log B are both unknown, and 1/10 + log A − log B vanishes."""
    logs = "log(1 + x[0] - x[0]**2)", "log(1 + 2*x[0] - 2*x[0]**2)"
    f = target(" + ".join(logs), n=2, d=2, box="0:1,1:2")
    assert not written_failures(f"{f.source} + {logs[0]} - {logs[0]}", f)
    assert "1/(" in written_failures(f"{f.source} + 0/(1/10 + {logs[0]} - {logs[1]})", f)[0]


@pytest.mark.parametrize("n", [1, 2])
def test_few_places(n: int) -> None:
    f = target("mean(y[0])", n=n, d=2, box="0:1,1:2")
    assert not written_failures("mean(y[0]) + 0/(1 + mean(y[0]))", f)
    assert written_failures("mean(y[0] + 0/(y[0] - x[0] + y[1] - x[1]))", f)


@pytest.mark.parametrize("places", [False, True])
def test_an_error_that_is_no_number_is_not_below_any_bound(places: bool) -> None:
    c = sumformer.construct("mean(y)", 1e-3, n=2, positions=places)
    object.__setattr__(c, "target", target("mean(y) + 0*log(x - 9)", n=2, positions=places))
    found, refuted = examine(c, c.certificate.total)
    assert found.worst != found.worst
    assert refuted


def test_inputs_where_f_is_no_number_hide_no_others() -> None:
    """In float64 e^(1000 x) − e^(1000 x) is NaN for most x; there the error is unknown, not the answer."""
    c = sumformer.construct("mean(y)", 1e-3, n=2)
    object.__setattr__(c, "target", target("mean(y) + 1e-9*tanh(exp(1000*x) - exp(1000*x))", n=2))
    found, refuted = examine(c, c.certificate.total)
    assert 0 <= found.worst <= c.certificate.total
    assert not refuted


# ---- errors of Python


@pytest.mark.parametrize("name", ["places", "sums"])
def test_half_a_character_is_refused(copy: Copy, name: str) -> None:
    with pytest.raises(FileFormatError, match="half a character"):
        check(copy(name).edit("certificate", lambda c: c["constants"].update(why="\ud800")).folder)
    with pytest.raises(FileFormatError, match="half a character"):
        check(copy(name).edit("config", put("type")("\udfff")).folder)


@pytest.mark.parametrize("attention", [None, [], "SoftmaxAttention", True])
def test_an_attention_is_an_object(copy: Copy, attention: Any) -> None:
    with pytest.raises(FileFormatError, match="attention"):
        check(copy("look-up").edit("config", put("blocks", "modules", 2, "attention")(attention)).folder)


@pytest.mark.parametrize("name", ["lipschitz", "lipschitz_attained", "p"])
def test_numbers_beyond_float64_are_none(copy: Copy, name: str) -> None:
    found = check(copy("look-up").edit("certificate", lambda c: c["constants"].update({name: 10**400})).folder)
    assert not found.verified


def _centred(X: torch.Tensor) -> torch.Tensor:
    return X - X.mean(1, keepdim=True)


def test_an_assumed_constant_beyond_float64_is_none(tmp_path: Path) -> None:
    sumformer.construct(sumformer.target(_centred, n=2, lipschitz=1.0), 0.3).save(tmp_path)
    rewrite(tmp_path / "certificate.json", put("constants", "assumed_lipschitz")(10**400))
    assert not check(tmp_path).verified


@pytest.mark.parametrize("name", ["certificate.json", "config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_only_plain_files_are_read(copy: Copy, name: str, kind: str) -> None:
    path = copy("sums").folder / name
    path.unlink()
    if kind == "device":
        path.symlink_to(os.devnull)
    else:
        os.mkfifo(path)
    with pytest.raises(FileFormatError, match="not a plain file"):
        check(path.parent)


def test_a_link_to_a_plain_file_is_read(copy: Copy) -> None:
    path = copy("sums").folder / "config.json"
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")
    assert check(path.parent).verified


# ---- "verified" of folders that cannot be loaded


def _more(*path: Any) -> Change:
    def change(data: Any) -> None:
        for key in path:
            data = data[key]
        data["more"] = 1

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("deep", _more("embedding")),
        ("deep", _more("head")),
        ("deep", _more("layers")),
        ("sparse", _more("positions")),
        ("sparse", put("positions", "std")(None)),
        ("sparse", put("positions", "std")(-1.0)),
        ("sparse", _more("layers", "modules", 1)),
        ("sparse", _more("layers", "modules", 1, "attention")),
        ("deep", _more("layers", "modules", 1, "attention")),
    ],
)
def test_keys_of_no_argument_are_refused(copy: Copy, name: str, change: Change) -> None:
    folder = copy(name).edit("config", change).folder
    with pytest.raises(FileFormatError, match="does not describe a deep network"):
        check(folder)


@pytest.mark.parametrize("seed", [None, 0.0, float("nan"), "0", True, 2**64])
def test_a_seed_is_a_whole_number(copy: Copy, seed: Any) -> None:
    def change(data: Any) -> None:
        (block,) = (b for b in data["blocks"]["modules"] if b["attention"]["type"] != "Zero")
        block["attention"]["seed"] = seed

    found = check(copy("performer").edit("config", change).folder)
    assert not found.verified
    assert "seed" in found.failures[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(copy: Copy, name: str) -> None:
    found = check(copy(name).folder)
    assert found.verified, found.failures


def test_a_function_is_not_certified_to_any_error(tmp_path: Path) -> None:
    def spread(X: torch.Tensor) -> torch.Tensor:
        return (X - X.mean(1, keepdim=True)).abs()

    sumformer.construct(sumformer.target(spread, n=3, lipschitz=2.0), 0.3).save(tmp_path)
    assert check(tmp_path).verified
    rewrite(tmp_path / "certificate.json", lambda data: data.update(epsilon=float("inf")))
    assert not check(tmp_path).verified


@pytest.mark.parametrize(
    "source", ["mean((y*abs(x-y))**2)", "mean(y*norm(cat(x, y))**2)", "mean((y*abs(x-y))**3*abs(x-y)*exp(x*y))"]
)
def test_squares_of_absolute_values_are_squares(source: str, tmp_path: Path) -> None:
    """They are polynomials to the constructor, so they must be to the checker."""
    sumformer.construct(source, 1e-2, n=3).save(tmp_path)
    assert check(tmp_path).verified

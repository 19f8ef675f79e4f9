"""What is read: plain files, each key once, values of their own type, and no key that is no argument of a module."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tampered import Change, Copy, Sample, put, rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError
from sumformer.theorems.verification import verify

SAMPLES: dict[str, Sample] = {
    "places": ("sum(max(0, min(1, i-j+1))*y)/i", 1e-3, {"n": 4, "positions": True}),
    "sums": ("mean(y)", 1e-3, {"n": 2}),
    "look-up": ("abs(x - mean(y))", 0.2, {"n": 2, "route": "grid", "architecture": "transformer"}),
    "deep": ("x*mean(y)", 0.4, {"n": 2, "architecture": "deep-transformer"}),
    "sparse": ("x*mean(y)", 0.4, {"n": 2, "architecture": "sparse-transformer"}),
    "performer": ("x*mean(y)", 0.4, {"n": 2, "architecture": "performer"}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(copy: Copy, name: str) -> None:
    found = check(copy(name).folder)
    assert found.verified, found.failures


# ---- files and text


def test_a_key_stands_once(tmp_path: Path) -> None:
    sumformer.construct("mean(y)", 1e-3).save(tmp_path)
    for name, key in (("certificate.json", "epsilon"), ("config.json", "d")):
        folder = tmp_path / name.removesuffix(".json")
        folder.mkdir()
        for file in ("certificate.json", "config.json", "model.safetensors"):
            shutil.copy(tmp_path / file, folder)
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("{", f'{{"{key}": 1, ', 1))
        with pytest.raises(FileFormatError, match="twice"):
            check(folder)
        with pytest.raises(FileFormatError, match="twice"):
            sumformer.load(folder)


@pytest.mark.parametrize("name", ["places", "sums"])
def test_half_a_character_is_refused(copy: Copy, name: str) -> None:
    with pytest.raises(FileFormatError, match="half a character"):
        check(copy(name).edit("certificate", lambda c: c["constants"].update(why="\ud800")).folder)
    with pytest.raises(FileFormatError, match="half a character"):
        check(copy(name).edit("config", put("type")("\udfff")).folder)


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


# ---- values


def test_a_number_is_not_a_string(tmp_path: Path) -> None:
    sumformer.construct("mean(exp(x*y))", 1e-3).save(tmp_path)

    def change(data: Any) -> None:
        kernel = data["constants"]["kernels"][0]
        kernel["remainder"] = str(kernel["remainder"])

    rewrite(tmp_path / "certificate.json", change)
    with pytest.raises(FileFormatError, match="number"):
        check(tmp_path)


@pytest.mark.parametrize("name", ["lipschitz", "lipschitz_attained", "p"])
def test_numbers_beyond_float64_are_none(copy: Copy, name: str) -> None:
    found = check(copy("look-up").edit("certificate", lambda c: c["constants"].update({name: 10**400})).folder)
    assert not found.verified


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("norm", "d_two"),
        ("norm", "d_inf"),
        ("norm", "max"),
        ("norm", 2),
        ("total", "1"),
        ("total", None),
        ("constants", 1),
    ],
)
def test_what_is_claimed_can_be_said(copy: Copy, key: str, value: Any) -> None:
    """Of files that are no proof, too: the claim is said before the verdict."""
    folder = copy("sums").edit("certificate", lambda c: c.update({key: value})).folder
    for read in (verify, sumformer.load):
        with pytest.raises(FileFormatError, match=key):
            read(folder)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"architecture": "deep-transformer"}, ("head", "d_model")),
        ({"architecture": "sparse-transformer"}, ("layers", "modules", 1, "attention", "d_head")),
        ({"architecture": "transformer", "route": "grid"}, ("blocks", "modules", 1, "feed_forward", "d_model")),
        ({"architecture": "transformer", "route": "grid"}, ("read_out", "out_features")),
        ({"architecture": "transformer"}, ("blocks", "modules", 1, "feed_forward", "d_model")),
    ],
)
def test_one_is_not_one_point_zero(options: dict[str, Any], path: tuple[str | int, ...], tmp_path: Path) -> None:
    sumformer.construct("x*mean(y)", 0.4, n=2, **options).save(tmp_path)

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = float(data[path[-1]])

    rewrite(tmp_path / "config.json", change)
    with pytest.raises(FileFormatError):
        check(sign(tmp_path))
    with pytest.raises(FileFormatError):
        sumformer.load(tmp_path)


def test_positions_are_true_or_not_recorded(tmp_path: Path) -> None:
    """`load` took 1 for true, the checker did not."""
    options: dict[str, Any] = {"d": 2, "n": 2, "box": "0:1,1:2", "architecture": "deep-transformer"}
    sumformer.construct("mean(y[0])+mean(y[1])", 0.9, **options).save(tmp_path)
    rewrite(tmp_path / "certificate.json", lambda data: data["constants"].update(positions=1))
    assert not check(sign(tmp_path)).verified


@pytest.mark.parametrize("seed", [None, 0.0, float("nan"), "0", True, 2**64])
def test_a_seed_is_a_whole_number(copy: Copy, seed: Any) -> None:
    def change(data: Any) -> None:
        (block,) = (b for b in data["blocks"]["modules"] if b["attention"]["type"] != "Zero")
        block["attention"]["seed"] = seed

    found = check(copy("performer").edit("config", change).folder)
    assert not found.verified
    assert "seed" in found.failures[0]


# ---- modules


@pytest.mark.parametrize("attention", [None, [], "SoftmaxAttention", True])
def test_an_attention_is_an_object(copy: Copy, attention: Any) -> None:
    with pytest.raises(FileFormatError, match="attention"):
        check(copy("look-up").edit("config", put("blocks", "modules", 2, "attention")(attention)).folder)


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

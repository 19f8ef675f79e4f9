"""What `construct --out` replaces, what is printed of constructed things, and the version."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app
from sumformer.gadgets.elementary import elementary
from sumformer.gadgets.reading import Reading


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("more", [[], ["--as", "all"]])
def test_another_target_is_replaced_on_request_only(tmp_path: Path, more: list[str]) -> None:
    out = ["--out", str(tmp_path / "net"), "--no-report", *more]
    assert run("construct", "x*mean(y)", *out)[0] == 0
    held = {path: path.read_bytes() for path in (tmp_path / "net").rglob("*") if path.is_file()}
    code, text = run("construct", "x - mean(y)", *out)
    assert code == 2
    assert "x*mean(y): --overwrite" in text
    assert held == {path: path.read_bytes() for path in (tmp_path / "net").rglob("*") if path.is_file()}
    assert run("construct", "x*mean(y)", "--epsilon", "0.01", *out)[0] == 0
    assert run("construct", "x - mean(y)", "--overwrite", *out)[0] == 0


def test_a_damaged_certificate_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{")
    code, text = run("construct", "x*mean(y)", "--out", str(tmp_path), "--no-report")
    assert code == 2
    assert "--overwrite" in text


def test_what_is_constructed_is_printed_in_a_line() -> None:
    made = sumformer.construct("x*mean(y)", 1e-3)
    gadget = elementary("exp", Reading({"t": 1.0}, lo=-1.0, hi=2.0), "out", 1e-8, prefer="parameters")
    assert repr(made).startswith("Construction(x*mean(y) as a sumformer by route exact: sup error ≤ ")
    assert repr(made.certificate).startswith("Certificate(x*mean(y), d = 1, any tokens, box 0:1: sup error ≤ ")
    assert repr(gadget).startswith("Gadget(polynomial: 47 layers, width 7, error ≤ ")
    assert all(len(repr(thing)) < 120 for thing in (made, made.certificate, gadget))


def test_the_version() -> None:
    assert run("--version") == (0, sumformer.__version__)

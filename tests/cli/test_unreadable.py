"""Folders that cannot be read: a message and exit 2, from `verify` and from `explain`; exit 1 means "not verified"."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sumformer.construct("mean(y)", 1e-3, n=2).save(tmp_path)
    return tmp_path


def edit(folder: Path, **fields: Any) -> None:
    path = folder / "certificate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("command", ["verify", "explain"])
@pytest.mark.parametrize(
    "fields",
    [{"total": "x"}, {"constants": []}, {"epsilon": None}, {"tokens": 2}, {"constants": {"why": "\ud800"}}],
)
def test_a_certificate_of_other_types(folder: Path, command: str, fields: dict[str, Any]) -> None:
    edit(folder, **fields)
    result = CliRunner().invoke(app, [command, str(folder)])
    assert result.exit_code == 2, result.output
    assert "certificate.json" in "".join(result.output.split())


@pytest.mark.parametrize("command", ["verify", "explain"])
def test_a_certificate_that_is_a_device(folder: Path, command: str) -> None:
    (folder / "certificate.json").unlink()
    (folder / "certificate.json").symlink_to(os.devnull)
    result = CliRunner().invoke(app, [command, str(folder)])
    assert result.exit_code == 2
    assert "not a plain file" in " ".join(result.output.split())


def test_more_coordinates_than_are_checked_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sumformer.theorems.construction.refuse_coordinates", lambda f: None)  # as older versions did
    sumformer.construct("x + mean(y)", 0.1, d=30, n=2).save(tmp_path)
    assert CliRunner().invoke(app, ["verify", str(tmp_path)]).exit_code == 2
    assert CliRunner().invoke(app, ["explain", str(tmp_path)]).exit_code == 0

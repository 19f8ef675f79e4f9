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


def test_more_coordinates_than_are_checked_are_explained(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["construct", "x + mean(y)", "--dim", "30", "-e", "0.1"])
    assert refused.exit_code == 2
    assert "at most 28 coordinates; this target has 30" in " ".join(refused.output.split())
    sumformer.construct("x + mean(y)", 0.1, d=28, n=2).save(tmp_path)
    certificate = tmp_path / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"d": 28', '"d": 30'))
    found = CliRunner().invoke(app, ["verify", str(tmp_path)])
    assert found.exit_code == 2
    assert "28" in found.output

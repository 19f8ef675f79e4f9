"""What `construct --out` replaces, and what only with `--overwrite`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app


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

"""The name of a folder or file is printed as it is, also where it looks like rich's markup."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sumformer.cli import demo
from sumformer.cli.app import app

STORED = Path(__file__).parents[2] / "experiments" / "results" / "alternatives.json"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["construct", "x*mean(y)", "--no-report"], "[red]"),
        (["trace"], "[red].png"),
        (["sizes", "x*mean(y)", "-n", "2", "-e", "0.5"], "[red].png"),
        (["reproduce", "alternatives", "--redraw", str(STORED)], "[red]"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_where_it_was_written(words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [*words, "--out", name])
    assert found.exit_code == 0, found.output
    assert f"written to {name}" in " ".join(found.output.split())


def test_the_commands_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "write_report", lambda *_: None)
    demo._construct("x*mean(y)", 1e-3, Path("[red]"), d=1)
    assert "--out [red] " in capsys.readouterr().out

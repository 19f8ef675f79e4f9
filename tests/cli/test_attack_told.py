"""What the attack had no time for is printed, in words and in --json."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from sumformer.certificates import attack as attacks
from sumformer.cli.app import app


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def run_json(*arguments):
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(attacks, "attack", partial(attacks.attack, seconds=0.0))


@pytest.mark.usefixtures("hurried")
def test_no_time_is_told(tmp_path):
    out = str(tmp_path / "a")
    said = run("construct", "mean(tanh(x*y))", "--out", out)
    assert "cut short" in said
    assert "no time was left to attack with: " in said
    assert "No time was left to attack with" in (tmp_path / "a" / "report.html").read_text("utf-8")
    assert "no time was left to attack with: " in run("verify", out)
    missing = run_json("verify", out)["attack_not_reached"]
    assert {"random", "faces", "ascent"} <= set(missing)
    assert run_json("construct", "mean(tanh(x*y))")["attack_not_reached"] == missing


def test_time_enough_is_not(tmp_path):
    out = str(tmp_path / "a")
    data = run_json("construct", "x - mean(y)", "--epsilon", "1e-6", "--out", out)
    assert data["attack_not_reached"] == []
    assert "no time was left" not in run("verify", out)

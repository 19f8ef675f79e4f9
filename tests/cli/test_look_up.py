"""`sumformer construct --as transformer --route grid`, in both activations, and its refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

ASK = ["construct", "max(y)", "-n", "2", "--as", "transformer", "--route", "grid"]


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(("activation", "norm"), [("step", "sup"), ("relu", "d_1")])
def test_construct_and_verify(activation: str, norm: str, tmp_path: Path):
    out = str(tmp_path / "made")
    made = run(*ASK, "-e", "0.4", "--activation", activation, "--json", "--no-report", "-o", out)
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert (found["norm"], found["route"], found["attention_layers"]) == (norm, "grid", 1)
    verified = run("verify", out, "--no-attack")
    assert verified.exit_code == 0, verified.output


def test_off_the_ramps_is_said():
    shown = run(*ASK, "-e", "0.4", "--activation", "relu")
    assert shown.exit_code == 0, shown.output
    assert "off the ramps" in shown.output


def test_refused_with_the_epsilon_that_fits():
    refused = run(*ASK, "-e", "1e-5")
    assert refused.exit_code != 0
    assert "reachable here" in refused.output

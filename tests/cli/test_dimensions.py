"""`sumformer dimensions EXPRESSION`: three latent dimensions, or one clear message."""

import json

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["dimensions", *arguments], catch_exceptions=False)


def test_three_choices_of_a_polynomial():
    result = run("sum_others((x-y)**6)*sum(y)", "--tokens", "4", "--dim", "2", "--json")
    rows = {row["choice"]: row for row in json.loads(result.stdout)["rows"]}
    assert {name: row["latent_dimension"] for name, row in rows.items()} == {
        "proof": 14,
        "sufficient": 9,
        "shallowest": 12,
    }
    assert all(row["identity"] == "modular" for row in rows.values())
    assert all(0 < row["failure_probability"] < 1e-12 for row in rows.values())


def test_a_tree_over_all_tokens():
    result = run("x[0]*x[1]*x[2] + x[1]**3 + x[2]**3", "-n", "3", "--flat", "--markdown")
    assert result.exit_code == 0
    assert "| sufficient | 2 | 2 | 2 |" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exp(x)",), "not a polynomial"),
        (("x[1]", "-n", "3", "--flat"), "change places"),
        (("x +",), "expected"),
        (("--flat",), "about an EXPRESSION"),
    ],
)
def test_refusals(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())

"""`sumformer dimensions EXPRESSION`: three latent dimensions, or one clear message."""

import json
from fractions import Fraction

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


def test_what_is_written_out_is_the_polynomial():
    """The text of σ is Python: at x = 3 with 5 and −2 beside it, it is Σ (x − y)⁴ − x over the others."""
    x, others = Fraction(3), [Fraction(5), Fraction(-2)]
    printed = run("sum_others((x-y)**4) - x", "-n", "3").stdout.splitlines()
    lines = dict(line.split(": ") for line in printed if ": " in line)
    p = [sum(y**k for y in others) for k in range(5)]
    assert {*lines} == {"proof", "sufficient", "shallowest"}
    for line in lines.values():
        assert eval(line, {"x": x, "p": p}) == sum((x - y) ** 4 for y in others) - x
    assert lines["shallowest"].count("p[4]") == 1
    assert not any("p[4]" in lines[name] for name in ("proof", "sufficient"))


def test_long_polynomials_are_counted_alone():
    arguments = ("sum_others((x-y)**6)*sum(y)", "--tokens", "4", "--dim", "2")
    rows = json.loads(run(*arguments, "--json").stdout)["rows"]
    assert [row["sigma"] is None for row in rows] == [row["terms"] > 40 for row in rows] == [True, True, False]
    printed = run(*arguments).stdout
    assert "shallowest of coordinate 1: " in printed
    assert "sufficient of" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exp(x)",), "not a polynomial"),
        (("exp(x)",), "sumformer routes 'exp(x)'"),
        (("x[1]", "-n", "3", "--flat"), "change places"),
        (("x +",), "expected"),
        (("--flat",), "about an EXPRESSION"),
    ],
)
def test_refusals(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())

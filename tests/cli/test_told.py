"""What commands say of their work: seconds, rows of a table, what a verdict is given, the routes of a target."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import torch
from typer.testing import CliRunner

import sumformer
from sumformer.certificates.certificate import CERTIFICATE_FILE
from sumformer.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def spread(X: torch.Tensor) -> torch.Tensor:
    return (X - X.mean(1, keepdim=True)).abs()


@pytest.fixture(scope="module")
def opaque(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told") / "opaque"
    f = sumformer.target(spread, n=3, d=1, lipschitz=1.0)
    sumformer.construct(f, 0.2).save(folder)
    return folder


def test_construct_accounts_for_its_seconds(tmp_path):
    said = run("construct", "x*mean(y)", "-n", "3", "--out", str(tmp_path / "a"))
    assert re.search(r"constructed in \d+\.\d\d s, attack \d+\.\d s, report \d+\.\d s", " ".join(said.split()))


def test_rows_of_all_architectures_can_be_read_by_themselves():
    said = json.loads(run("construct", "x*mean(y)", "-n", "3", "-e", "1e-2", "--as", "all", "--json"))
    for row in said["rows"]:
        assert (row["route"], row["latent_dimension"]) == ("exact", 1)
        assert (row["dim"], row["tokens"], row["box"], row["dtype"]) == (1, "3", "0:1", "float64")


def test_a_verdict_on_a_function_names_what_it_is_given(opaque):
    said = " ".join(run("verify", str(opaque)).split())
    assert "verified, given the modulus and equivariance of the function, which are taken from you" in said
    given = json.loads(run("verify", str(opaque), "--json"))["given"]
    assert [text.partition(":")[0] for text in given] == ["modulus", "equivariance"]


def test_a_verdict_that_is_none_is_given_nothing(opaque, tmp_path):
    for file in opaque.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    certificate = tmp_path / CERTIFICATE_FILE
    certificate.write_text(certificate.read_text().replace('"epsilon": 0.2', '"epsilon": 0.02'))
    assert "given the" not in run("verify", str(tmp_path), code=1)


def test_a_verdict_on_a_formula_is_given_nothing(tmp_path):
    sumformer.construct("x*mean(y)", 1e-3, n=3).save(tmp_path / "a")
    assert "given the" not in run("verify", str(tmp_path / "a"), "--no-attack")


def test_targets_print_the_command_that_compares_routes():
    rows = {row["name"]: row for row in json.loads(run("targets", "--json"))["targets"]}
    assert rows["distance_to_mean"]["class"] == "sums"
    for name, chosen in {"distance_to_mean": "sums", "centring": "exact"}.items():
        program, *words = shlex.split(rows[name]["command"])
        assert program == "sumformer"
        assert json.loads(run(*words, "--json"))["chosen"] == chosen
    assert rows["max_pooling"]["command"] in run("targets")


def test_bounds_are_shown_rounded_up(tmp_path):
    """0.000267 for 0.0002674 would be no bound."""
    made = json.loads(run("construct", "mean(exp(-norm2(x-y)))", "-e", "1e-4", "-o", str(tmp_path), "--json"))
    shown = run("verify", str(tmp_path), "--no-attack")
    claimed = float(re.search(r"claimed │ (\S+)", " ".join(shown.split())).group(1))
    stated = float(re.search(r"‖_∞ ≤ (\S+)", shown).group(1))
    assert made["certified_error"] <= claimed == stated <= 1.01 * made["certified_error"]

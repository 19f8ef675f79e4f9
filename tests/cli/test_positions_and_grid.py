"""`sumformer construct --positions` and route grid from the command line."""

import json

from typer.testing import CliRunner

from sumformer.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_function_of_the_places(tmp_path):
    source = "sum(max(0, min(1, i-j+1))*y)/i"
    result = run("construct", source, "--positions", "-n", "3", "-e", "1e-6", "-o", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["certified_error"] <= 1e-6
    assert said["observed_error"] <= said["certified_error"]
    assert {p.name for p in tmp_path.iterdir()} >= {
        "config.json",
        "model.safetensors",
        "certificate.json",
        "report.html",
    }


def test_json_says_what_was_asked_and_what_is_certified():
    asked = ("x*i + mean(y*j)", "--tokens", "5", "--positions", "--box", "-1:1", "--json")
    said = json.loads(run("construct", *asked).stdout)
    wanted = {"target": "x*i + mean(y*j)", "positions": True, "dim": 1, "box": "-1:1", "tokens": "5"}
    assert {name: said[name] for name in wanted} == wanted
    assert said["certified_target"] == "x[0]*x[1] + mean(y[0]*y[1])"
    assert said["attack_seconds"] > 0
    assert "report_seconds" not in said  # none was written
    said = json.loads(run("routes", *asked).stdout)
    assert {name: said[name] for name in wanted} == wanted


def test_without_the_option_i_is_unknown_and_the_option_named():
    result = run("construct", "x*i", "-n", "3")
    assert result.exit_code == 2
    assert "--positions" in result.output


def test_route_grid_and_the_epsilon_it_allows():
    result = run("construct", "max(norm(x-y))", "-n", "3", "-e", "0.2", "--route", "grid", "--json", "--no-report")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["route"] == "grid"
    refused = run("construct", "max(norm(x-y))", "-n", "8", "-d", "2", "-e", "1e-6", "--route", "grid")
    assert refused.exit_code == 2
    assert "reachable here" in " ".join(refused.output.split())

"""The command line as a user meets it: exit codes, one clear message, JSON on standard output."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, list(arguments), catch_exceptions=False)


def run_json(*arguments, code=0):
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def blur(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "blur"
    source = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"
    data = run_json("construct", source, "--dim", "1", "--epsilon", "1e-3", "--out", str(folder))
    return folder, data


def test_construct_writes_everything_and_says_so(blur):
    folder, data = blur
    assert {p.name for p in folder.iterdir()} == {"config.json", "model.safetensors", "certificate.json", "report.html"}
    for key in ("route", "latent_dimension", "parameters", "attention_layers", "certified_error", "observed_error"):
        assert key in data
    assert data["observed_error"] <= data["certified_error"] <= 1e-3
    assert data["route"] == "sums"


def test_verify_accepts_and_refuses(blur, tmp_path):
    folder, _ = blur
    data = run_json("verify", str(folder))
    assert data["verified"] is True
    assert data["recomputed_bound"] <= data["certified_error"]
    for name in ("config.json", "model.safetensors", "certificate.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    text = (tmp_path / "certificate.json").read_text()
    (tmp_path / "certificate.json").write_text(text.replace('"epsilon": 0.001', '"epsilon": 0.0001'))
    data = run_json("verify", str(tmp_path), code=1)
    assert data["verified"] is False
    assert data["failures"]


def test_verify_shows_the_verdict_in_words(blur):
    result = run("verify", str(blur[0]), "--no-attack")
    assert result.exit_code == 0
    assert "verified" in result.stdout
    claim = "for every X of any number of tokens in the box 0:1; f = sum(exp(-norm2(x - y))*y)"
    assert claim in " ".join(result.stdout.split())


def rows(text):
    """The first and the last column of a table in the terminal, where the last one is a number."""
    lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    return {cells[0]: float(cells[-1]) for cells in lines if cells[-1]}


@pytest.mark.parametrize("source", ["mean(sigmoid(3*x-y))", "mean(exp(-2*x*y))", "x*mean(y)/7", "mean(cos(2*x+y))"])
def test_a_bound_in_a_table_is_never_below_the_proved_one(source, tmp_path):
    arguments = ("construct", source, "--epsilon", "0.0123456", "--out", str(tmp_path), "--no-report")
    data = run_json(*arguments)
    told = run(*arguments)
    shown = rows(told.stdout)
    for term in data["terms"]:
        assert term["bound"] <= shown[term["name"]] <= 1.011 * term["bound"]
    assert data["certified_error"] <= shown["certified for every input"] <= 1.011 * data["certified_error"]
    assert shown["asked for (ε)"] == 0.0123456
    proof = run_json("verify", str(tmp_path), "--no-attack")
    shown = rows(run("verify", str(tmp_path), "--no-attack").stdout)
    for term in proof["terms"]:
        assert term["recomputed"] <= shown[term["name"]]
    assert proof["recomputed_bound"] <= shown["recomputed in all"]
    assert proof["certified_error"] <= shown["claimed"]
    assert float(repr(sumformer.load(tmp_path)).split("≤ ")[1].split(",")[0]) >= data["certified_error"]


def test_construct_prints_route_budget_and_assumptions():
    result = run("construct", "x + 7*x**2 + 3*x*sum_others(y)**3", "--dim", "2", "--tokens", "3", "--epsilon", "1e-6")
    assert result.exit_code == 0
    for word in ("route exact", "C(n+d, d) − 1 = 9", "rounding", "certified for every input", "assumed", "worst found"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["construct", "mean(z)"], ["z"]),
        (["construct", "max(y)", "--route", "sums"], ["not made of sums"]),
        (["construct", "sum(y)"], ["needs tokens"]),
        (["construct", "mean(y)", "--box", "1:0"], ["lower < upper"]),
        (["construct", "mean(y)", "--tokens", "zero"], ["tokens"]),
        (["construct", "mean(exp(x*y))", "--epsilon", "1e-17"], ["not reachable", "nearest: ε = "]),
        (["construct", "log(mean(y))"], ["may leave its domain"]),
        (["construct", "mean(y)", "--dtype", "int8"], ["dtype"]),
        (["verify", "no/such/folder"], ["no such"]),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert all(word in result.stderr for word in words), result.stderr
    assert "Traceback" not in result.stderr
    data = json.loads(run(*arguments, "--json").stdout)
    assert data["error"]


def test_a_missing_option_value_is_a_usage_error():
    assert run("construct").exit_code == 2
    assert run("construct", "mean(y)", "--epsilon", "small").exit_code == 2


def test_a_bug_gives_a_traceback(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("sumformer.cli.construct.formula_target", broken)
    with pytest.raises(ZeroDivisionError):
        run("construct", "mean(y)")


def test_targets_lists_the_gallery():
    data = run_json("targets")
    assert len(data["targets"]) >= 16
    assert {row["class"] for row in data["targets"]} == {"exact", "sums", "lipschitz"}
    assert "figure_2" in run("targets").stdout


def test_info_says_what_is_there_and_why_the_rest_is_not():
    data = run_json("info")
    assert data["packages"]["torch"]
    assert data["devices"]
    assert all(data["fast_paths"].values())
    assert "Triton" in run("info").stdout


def test_the_entry_point_runs_in_a_fresh_process():
    done = subprocess.run([sys.executable, "-m", "sumformer", "construct", "mean(y"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version():
    result = run("--version")
    assert (result.exit_code, result.output.strip()) == (0, sumformer.__version__)

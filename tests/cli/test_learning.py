"""`fit`, `predict` and `compare` as a user meets them."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

runner = CliRunner()
QUICK = ("--hidden", "8", "--depth", "1", "--latent", "4", "--epochs", "3")


def run(*arguments, code=0):
    result = runner.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    x, lengths = rng.normal(size=(80, 6, 2)), rng.integers(1, 7, size=80)
    x[..., 0] += np.arange(80)[:, None] % 2 * 2
    np.savez(folder / "tokens.npz", x=x, y=x - x.mean(1, keepdims=True), lengths=lengths)
    np.savez(folder / "classes.npz", x=x, y=np.array(["even", "odd"])[np.arange(80) % 2], lengths=lengths)
    return folder


@pytest.mark.parametrize("name", ["tokens", "classes"])
def test_fit_then_predict(data, tmp_path, name):
    file = data / f"{name}.npz"
    result = run("fit", file, "--out", tmp_path / "out", *QUICK, "--json")
    report = json.loads(result.stdout)
    assert report["status"] == "finished"
    assert report["interval"][0] <= report["error"] <= report["interval"][1]
    assert len(report["worst"]) == 5 or name == "classes"
    assert all(worst["error"] > 0 for worst in report["worst"])
    assert len(report["history"]) == 4
    assert report["milliseconds_per_set"] > 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<figure") >= 4
    assert "http" not in page.replace("http-equiv", "")
    run("predict", tmp_path / "out", file, "--out", tmp_path / "p.npz")
    y = np.load(tmp_path / "p.npz")["y"]
    truth = np.load(file)["y"]
    assert y.shape == truth.shape
    assert y.dtype.kind == truth.dtype.kind
    if name == "classes":
        assert set(y) <= {"even", "odd"}
    else:
        run("predict", tmp_path / "out", file, "--out", tmp_path / "p.safetensors", "--json")


def test_fit_shows_a_table_and_resumes(data, tmp_path):
    result = run("fit", data / "tokens.npz", "--out", tmp_path, *QUICK, "--no-report")
    for words in ("error", "95 %", "best constant", "equivariance error", "milliseconds per set", "worst sets"):
        assert words in result.stdout
    again = run("fit", data / "tokens.npz", "--out", tmp_path, "--resume", "--no-report", "--json")
    assert json.loads(again.stdout)["epochs"] == 3
    more = run("fit", data / "tokens.npz", "--out", tmp_path, "--resume", "--epochs", "5", "--no-report", "--json")
    assert json.loads(more.stdout)["epochs"] == 5


def test_ctrl_c_stops_saves_and_says_how_to_go_on(data, tmp_path, monkeypatch):
    @contextmanager
    def interrupted():
        yield lambda progress: signal.raise_signal(signal.SIGINT) if progress.epoch == 1 else None

    whole = run("fit", data / "tokens.npz", "--out", tmp_path / "b", *QUICK, "--no-report", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("sumformer.cli.fit.shown_progress", interrupted)
        result = run("fit", data / "tokens.npz", "--out", tmp_path / "a", *QUICK, "--no-report", code=130)
    assert "--resume" in result.stderr
    resumed = run("fit", data / "tokens.npz", "--out", tmp_path / "a", "--resume", "--no-report", "--json")
    assert json.loads(resumed.stdout)["history"] == json.loads(whole.stdout)["history"]
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.npz",), "no such file"),
        (("data.txt",), ".npz"),
        (("target:mean(z)",), "z"),
        (("target:mean(y)", "--as", "lstm"), "polynomial-sumformer"),
        (("target:mean(y)", "--sets", "2"), "too few"),
        (("target:mean(y)", "--start", "nowhere"), "no such file"),
        (("target:mean(y)", "--device", "tpu"), "device"),
        (("target:mean(y)", "--parameters", "5"), "parameters"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(tmp_path, arguments, words):
    result = run("fit", *arguments, "--out", tmp_path / "out", code=2)
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert json.loads(run("fit", *arguments, "--out", tmp_path / "out", "--overwrite", "--json", code=2).stdout)[
        "error"
    ]


def test_a_start_is_not_built_anew(tmp_path):
    """What --start would leave unused is refused, by name and no more; the default asked for is asked for too."""
    start = ("fit", "target:mean(y)", "--start", "nowhere", "--out", tmp_path / "out")
    building = {"--as": "mlp-sumformer", "--hidden": "64", "--depth": "1", "--latent": "4", "--parameters": "100"}
    for option, value in building.items():
        words = " ".join(run(*start, option, value, code=2).stderr.split())
        assert "has its architecture and size already" in words
        assert words.endswith(f"leave out {option}")
    assert "leave out --as, --hidden" in " ".join(run(*start, "--hidden", 7, "--as", "sparse", code=2).stderr.split())
    assert "no such file" in run(*start, "--epochs", 2, "--learning-rate", 0.1, code=2).stderr


def test_predict_refuses_tokens_of_another_width(data, tmp_path):
    run("fit", data / "tokens.npz", "--out", tmp_path, *QUICK, "--no-report")
    result = run("predict", tmp_path, "target:mean(y)", "--dim", "3", "--out", tmp_path / "p.npz", code=2)
    assert "tokens of width 2" in result.stderr
    result = run("predict", tmp_path, data / "tokens.npz", "--out", tmp_path / "p.csv", code=2)
    assert "write .npz" in result.stderr
    result = run("predict", tmp_path, data / "tokens.npz", "--out", tmp_path / "p.txt", code=2)
    assert ".npz" in result.stderr


def test_a_folder_is_printed_as_it_is_called(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "written to run[/red]" in run("fit", data / "tokens.npz", "--out", "run[/red]", *QUICK, "--no-report").stdout
    out = run("predict", "run[/red]", data / "tokens.npz", "--out", "p[a].npz")
    assert "written to p[a].npz" in out.stdout


def test_predict_keeps_a_file_that_is_there(data, tmp_path):
    run("fit", data / "tokens.npz", "--out", tmp_path / "net", *QUICK, "--no-report")
    out = tmp_path / "p.npz"
    out.write_text("mine")
    common = ("predict", tmp_path / "net", data / "tokens.npz", "--out", out)
    assert "--overwrite replaces it" in run(*common, code=2).stderr
    assert out.read_text() == "mine"
    run(*common, "--overwrite")
    assert np.load(out)["y"].shape == (80, 6, 2)


def test_compare_recommends_by_its_rule(data, tmp_path):
    few = ("--as", "mlp-sumformer,deep-sets,linformer", "--latents", "2,8", "--seeds", "2", "--epochs", "2")
    arguments = ("compare", data / "tokens.npz", *few, "--parameters", "1500", "--longest", "16", "--out", tmp_path)
    result = json.loads(run(*arguments, "--json").stdout)
    rows = {row["name"]: row for row in result["rows"]}
    assert set(rows) == {"mlp-sumformer", "deep-sets", "linformer"}
    for row in rows.values():
        assert 700 < row["parameters"] <= 1500
        assert len(row["validation"]) == len(row["test"]) == 2
        assert row["costs"][0]["n"] == 6
        assert all(c["peak_bytes"] > 0 and c["predict_seconds"] > 0 for c in row["costs"])
    assert not rows["linformer"]["equivariant"]
    assert result["recommendation"]["architecture"] in result["recommendation"]["tied"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure") == 6
    assert result["recommendation"]["rule"][:40] in page
    assert result["status"] == "finished"


def test_compare_says_what_is_kept_and_marks_what_is_there(data):
    few = ("--latents", "2", "--seeds", "1", "--epochs", "1", "--parameters", "1500", "--longest", "16")
    said = run("compare", data / "tokens.npz", "--as", "deep-sets", *few).stdout
    assert "nothing written; --out FOLDER keeps it" in said
    assert "order of tokens" not in said
    assert "* depends on the order" in run("compare", data / "tokens.npz", "--as", "linformer", *few).stdout


@pytest.fixture
def ctrl_c():
    """Python's own handler, also where the tests were started in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_compare_keeps_what_is_finished_on_ctrl_c(data, tmp_path, monkeypatch):
    names = ("mlp-sumformer", "deep-sets", "linformer")
    few = ("--as", ",".join(names), "--latents", "2", "--seeds", "1", "--epochs", "1", "--longest", "16")
    comparison = import_module("sumformer.experiments.comparison.run")
    whole, seen = comparison._trial, []

    def interrupted(name, *rest):
        if name == at:
            seen.extend(path.read_text() for path in tmp_path.glob("comparison.json"))
            signal.raise_signal(signal.SIGINT)
        return whole(name, *rest)

    monkeypatch.setattr(comparison, "_trial", interrupted)
    arguments = ("compare", data / "tokens.npz", *few, "--parameters", "1500", "--out", tmp_path)
    at = "deep-sets"
    result = run(*arguments, "--json", code=130)
    assert "stopped after 1 of 3 architectures; they are kept in" in " ".join(result.stderr.split())
    kept = json.loads(result.stdout)
    assert [row["name"] for row in kept["rows"]] == ["mlp-sumformer"]
    assert kept["left_out"] == {"deep-sets": "not finished", "linformer": "not finished"}
    assert [json.loads(text)["status"] for text in seen] == [
        "unfinished"
    ]  # on disk before Ctrl-C, so after kill -9 too
    assert json.loads((tmp_path / "comparison.json").read_text()) == kept
    assert "Of the 1 finished, use mlp-sumformer" in (tmp_path / "report.html").read_text()
    at = "mlp-sumformer"
    result = run(*arguments, "--overwrite", code=130)
    assert "stopped after" not in result.stderr

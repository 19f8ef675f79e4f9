"""`construct --as …` and `explain`, through the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

SOURCE = "x**2*mean(y)"


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_transformer_is_built_saved_and_explained(tmp_path):
    built = run(
        "construct", SOURCE, "-e", 1e-2, "-n", 3, "--as", "transformer", "-o", tmp_path, "--no-report", "--json"
    )
    assert built.exit_code == 0, built.output
    found = json.loads(built.stdout)
    assert found["attention_layers"] == 1
    assert found["parameters"] == found["size"]["nonzero"] < found["size"]["dense"]
    assert found["observed_error"] <= found["certified_error"] <= 1e-2
    explained = run("explain", tmp_path, "--input", "0.1; 0.5; 0.9", "--picture", tmp_path / "stream.png", "--json")
    assert explained.exit_code == 0, explained.output
    data = json.loads(explained.stdout)
    assert data["violations"] == []
    assert sum(block["attention"] for block in data["blocks"]) == 1
    assert (tmp_path / "stream.png").stat().st_size > 1000
    shown = run("explain", tmp_path)
    assert shown.exit_code == 0
    assert "certified" in shown.stdout


def test_all_four_in_one_table():
    found = run("construct", SOURCE, "-e", 1e-1, "-n", 3, "--as", "all", "--prefer", "depth", "--json")
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert [row["architecture"] for row in rows] == ["sumformer", "transformer", "linformer", "performer"]
    assert all(row["observed_error"] <= row["certified_error"] <= 1e-1 for row in rows)
    assert [row["attention_layers"] for row in rows] == [0, 1, 1, 1]


def test_one_and_all_count_alike(tmp_path):
    """Text, JSON and report of one network say what the table of four says of it."""
    asked = ("construct", SOURCE, "-e", 1e-1, "-n", 3)
    row = json.loads(run(*asked, "--as", "all", "--json").stdout)["rows"][1]
    size = json.loads(run(*asked, "--as", "transformer", "--json").stdout)["size"]
    assert {key: row[key] for key in size} == size
    shown = " ".join(run(*asked, "--as", "transformer", "-o", tmp_path).stdout.split())
    words = f"{size['feed_forward_layers']} blocks of width {size['width']}, {size['nonzero']} weights ≠ 0"
    assert words in shown
    assert words in (tmp_path / "report.html").read_text()
    assert json.loads(run(*asked, "--json").stdout)["size"] is None


def test_all_take_the_dtype_and_a_linformer_its_k():
    found = run("construct", SOURCE, "-e", 1e-1, "-n", 3, "--as", "all", "--dtype", "float32", "--json")
    rows = json.loads(found.stdout)["rows"]
    assert all("float64 only" in row["refused"] for row in rows[1:])
    assert rows[0]["certified_error"] > 1e-8  # float32, not float64
    found = run("construct", SOURCE, "-e", 1e-1, "-n", 3, "--as", "all", "--k", 4, "--json")
    _, transformer, linformer, performer = json.loads(found.stdout)["rows"]
    assert linformer["nonzero"] >= transformer["nonzero"] + 2 * 3 * 4  # E and F are 4 × 3
    assert performer["nonzero"] == transformer["nonzero"]


def test_what_is_refused_says_so_in_the_table():
    found = run("construct", SOURCE, "-e", 1e-1, "--as", "all")
    assert found.exit_code == 0, found.output
    assert "linformer refused" in found.stdout
    assert "certified" in found.stdout


@pytest.mark.parametrize("text", ["0.1; a; 0.9", "0.1; 0.2; 7"])
def test_bad_input_is_one_message(tmp_path, text):
    run("construct", SOURCE, "-e", 1e-1, "-n", 3, "--as", "transformer", "-o", tmp_path, "--no-report")
    found = run("explain", tmp_path, "--input", text)
    assert found.exit_code == 2
    assert "Traceback" not in found.output

"""A request that makes no sense is one message on standard error and exit code 2, never a traceback."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

OF_BOTH = ["-e nan", "-e 0", "-e -1", "-e inf", "-e a", "-n 0", "-n -1", "-n 2.5", "-d 0", "-d -1", "-d 2.5", "-d x"]
OF_BOTH += ["--dtype float16", "--box 1:0", "--colour 1"]
OF_CONSTRUCT = ["--as mlp", "--route short", "--as deep-transformer -n 2 --norm-p 0.5", "--as all -e nan"]


@pytest.mark.parametrize(
    ("command", "words"),
    [*(("construct", words) for words in (*OF_BOTH, *OF_CONSTRUCT)), *(("routes", words) for words in OF_BOTH)],
)
def test_one_message_and_exit_code_2(command: str, words: str):
    found = CliRunner().invoke(app, [command, "x - mean(y)", *words.split()])
    said = [line for line in found.stderr.splitlines() if line.lower().startswith("error: ")]
    assert (found.exit_code, len(said)) == (2, 1), found.output
    assert isinstance(found.exception, SystemExit)
    assert found.stdout == ""
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--as transformer --norm-p 1", "(--route grid --activation relu)"),
        ("--as transformer --activation relu", "(--route grid)"),
        ("--as linformer --route grid --norm-p 1", "(--activation relu)"),
        ("--norm-p 1", "p (--norm-p)"),
        ("--as transformer --pattern window:1", "p (--norm-p)"),
    ],
)
def test_options_are_spelt_as_on_the_command_line(words: str, said: str):
    found = CliRunner().invoke(app, ["construct", "x - mean(y)", "-n", "2", *words.split()])
    assert found.exit_code == 2
    assert said in " ".join(found.stderr.split())


@pytest.mark.parametrize(
    "words",
    [
        ["construct", "x - mean(y)", "--out"],
        ["construct", "x*mean(y)", "-n", "3", "-e", "0.1", "--as", "all", "--out"],
        ["reproduce", "figure-1", "--size", "tiny", "--out"],
        ["bench", "--longest", "256", "--out"],
        ["compare", "target:mean(y)", "--sets", "20", "--out"],
        ["fit", "target:mean(y)", "--sets", "20", "--out"],
        ["fit", "target:mean(y)", "--sets", "20", "--resume", "--out"],
    ],
)
def test_a_file_is_no_folder_and_is_kept(tmp_path, words: list[str]):
    (tmp_path / "notes").write_text("mine")
    found = CliRunner().invoke(app, [*words, str(tmp_path / "notes")])
    assert found.exit_code == 2
    assert "is a file; give a folder" in " ".join(found.stderr.split())
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("name", ["config.json", "report.html", "model.safetensors"])
def test_files_of_something_else_are_kept(tmp_path, name: str):
    (tmp_path / name).write_text("mine")
    found = CliRunner().invoke(app, ["construct", "x - mean(y)", "--out", str(tmp_path)])
    assert found.exit_code == 2
    assert "give another folder" in " ".join(found.stderr.split())
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "mine")]


@pytest.mark.parametrize("words", [["trace"], ["sizes", "x - mean(y)"]])
@pytest.mark.parametrize("name", ["picture.xyz", "picture", "nowhere/picture.png"])
def test_a_picture_has_a_format_and_a_folder(tmp_path, words: list[str], name: str):
    found = CliRunner().invoke(app, [*words, "--out", str(tmp_path / name)])
    assert (found.exit_code, found.stdout) == (2, ""), found.output
    assert isinstance(found.exception, SystemExit)
    assert "picture" in found.stderr


@pytest.mark.parametrize("command", ["construct", "routes", "sizes"])
def test_a_name_of_the_gallery_is_answered_by_its_formula(command: str):
    found = CliRunner().invoke(app, [command, "soft_rank"])
    assert found.exit_code == 2
    assert "'mean(sigmoid((x - y)/0.1))'" in " ".join(found.stderr.split())


def test_a_folder_below_a_file_is_refused_before_the_work(tmp_path):
    (tmp_path / "notes").write_text("mine")
    found = CliRunner().invoke(app, ["construct", "x - mean(y)", "--out", str(tmp_path / "notes" / "below")])
    assert (found.exit_code, found.stdout) == (2, "")
    assert "cannot be written" in " ".join(found.stderr.split())


def test_several_constructions_are_named(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "certificate.json").write_text("{}")
    found = CliRunner().invoke(app, ["verify", str(tmp_path)])
    message = "".join(found.stderr.split())
    assert found.exit_code == 2
    assert all(str(tmp_path / name) in message for name in ("one", "two"))


def test_formulas_of_the_gallery_and_sizes_are_shown_whole():
    assert "…" not in CliRunner().invoke(app, ["targets"], env={"COLUMNS": "80"}).stdout
    assert "…" not in CliRunner().invoke(app, ["sizes", "x - mean(y)", "--epsilon", "0.5"]).stdout

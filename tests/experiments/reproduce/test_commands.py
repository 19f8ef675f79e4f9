"""A result names the command that makes it again; the stored ones as well, with every number of their configuration."""

import csv
import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sumformer.cli import said_progress
from sumformer.cli.app import app
from sumformer.errors import InputError
from sumformer.experiments.reproduce import EXPERIMENTS, Experiment, Outcome, copying
from sumformer.experiments.reproduce.copying_picture import draw

STORED = Path(__file__).parents[3] / "experiments" / "results"


def plain(config):
    return json.loads(json.dumps(config))


@pytest.fixture
def configurations(monkeypatch, tmp_path):
    """What experiments are run with, in an empty folder and without running."""
    found = []

    def run(self, config, progress):
        found.append(config)
        return Outcome(self.name, vars(config), {}, (), (), (), 1.0, "", self.command(config))

    monkeypatch.setattr(Experiment, "run", run)
    monkeypatch.setattr(Experiment, "draw", lambda *_: None)
    monkeypatch.setattr("sumformer.cli.reproduce.check_device", lambda _: None)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda path: path.stem)
def test_the_command_of_a_stored_result_makes_its_configuration(path, configurations):
    stored = json.loads(path.read_text(encoding="utf-8"))
    program, *words = shlex.split(stored["command"])
    assert program == "sumformer"
    assert CliRunner().invoke(app, words).exit_code == 0
    made = plain(vars(configurations[0]))
    assert {key: value for key, value in made.items() if key in stored["config"]} == {
        key: value for key, value in stored["config"].items() if key in made
    }
    assert path.with_suffix(".csv").exists()
    assert path.with_suffix(".png").exists()


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("size", ["full", "reduced", "tiny"])
def test_a_command_says_the_configuration(name, size, configurations):
    chosen = EXPERIMENTS[name]
    config = chosen.config(size, "cuda", ["n=4"] if name != "copying" else ["widths=96,48", "rate=0.5"])
    result = CliRunner().invoke(app, shlex.split(chosen.command(config))[1:])
    assert result.exit_code == 0, result.output
    assert configurations == [config]
    outcome = Outcome.read(Path("reproduce-output") / name / f"{name}.json")  # where no --out is given
    assert outcome.command == chosen.command(config)
    again = CliRunner().invoke(app, ["reproduce", name])
    assert again.exit_code == 2
    assert "--overwrite" in again.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("steps", "NAME=VALUE"),
        ("depth=3", "depths, strides"),
        ("device=cuda", "NAME=VALUE"),
        ("steps=many", "a value like 3000"),
        ("heads=0", "a value like 4"),
        ("rate=nan", "a value like 0.001"),
        ("depths=1,x", "a value like 1,2,3,4"),
        ("patterns=ring", "among dense, strided"),
        ("depths=", "expected depths"),
        ("widths=128", "width of all"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        EXPERIMENTS["copying"].config("full", "cpu", [change])
    assert EXPERIMENTS["copying"].config("full", "cpu", ["seed=0"]).seed == 0


def test_some_patterns_alone(tmp_path):
    few = ["patterns=dense,star", "steps=2", "widths=24"]
    outcome = EXPERIMENTS["copying"].run(EXPERIMENTS["copying"].config("tiny", "cpu", few))
    assert [row["pattern"] for row in outcome.rows] == ["dense", "star"]
    stored = Outcome.read(STORED / "copying-wide.json")
    assert set(copying.candidates(copying.Config(patterns=("dense", "fixed", "star", "random")), False)) == {
        row["pattern"] for row in stored.data["rows"]
    }


def test_what_was_kept_of_the_wide_run_is_what_its_findings_say(tmp_path):
    stored = Outcome.read(STORED / "copying-wide.json")
    with (STORED / "copying-wide.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        said = f"{row['pattern']} {float(row['accuracy']):.2f}" if row["accuracy"] else row["pattern"]
        assert said in stored.findings[0].split("; not by ")[bool(row["accuracy"])]
        assert bool(row["accuracy"]) != (row["at_least"] == str(copying.SOLVED))
    draw(stored, tmp_path / "wide.png")
    before = (STORED / "copying.png").read_bytes()
    words = ["reproduce", "copying", "--redraw", str(STORED / "copying-wide.json"), "--out", str(tmp_path / "drawn")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert [path.name for path in (tmp_path / "drawn").iterdir()] == ["copying-wide.png"]
    assert (STORED / "copying.png").read_bytes() == before


def test_into_a_pipe_lines_are_printed(tmp_path, monkeypatch):
    words = ["reproduce", "figure-1", "--size", "tiny", "--json", "--out"]
    first = CliRunner().invoke(app, [*words, str(tmp_path / "a")])
    assert json.loads(first.stdout)["command"] == "sumformer reproduce figure-1 --size tiny"
    assert first.stderr.count("epoch") == 1  # the first at once, then one every ten seconds
    monkeypatch.setattr(said_progress, "SECONDS", 0.0)
    every = CliRunner().invoke(app, [*words, str(tmp_path / "b")])
    assert every.stderr.count("epoch") > 3
    assert "better training, mlp Sumformer: epoch 10 of 10" in every.stderr

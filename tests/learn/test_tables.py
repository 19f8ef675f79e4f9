"""Tables with a row for each token: which columns are read, and which are written beside them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app
from sumformer.errors import FileFormatError, InputError
from sumformer.learn import Reading, read
from sumformer.learn.sets import Columns

QUICK = ("--hidden", "8", "--depth", "1", "--latent", "4", "--epochs", "1", "--no-report")
RNG = np.random.default_rng(0)
IDS = np.repeat(np.arange(30), RNG.integers(1, 5, 30))
A, B, C = RNG.normal(size=(3, len(IDS)))


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return " ".join(result.stderr.split())


def write(path, **columns):
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, path) if path.suffix == ".parquet" else pyarrow.csv.write_csv(table, path)
    return path


def table(path):
    return pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_table_is_fitted_and_predicted(tmp_path, suffix):
    labels = np.where(A > 0, "pos", "neg")
    file = write(tmp_path / f"data{suffix}", jet=IDS, pt=A, eta=B, kind=labels)
    names = ("--set-column", "jet", "--features", "pt,eta", "--targets", "kind")
    run("fit", file, *names, "--out", tmp_path / "net", *QUICK)
    bare = write(tmp_path / f"bare{suffix}", eta=B, jet=IDS, pt=A)  # the columns are known by name
    run("predict", tmp_path / "net", bare, "--out", tmp_path / f"p{suffix}")
    out = table(tmp_path / f"p{suffix}")
    assert out.column_names == ["eta", "jet", "pt", "kind"]
    assert set(out["kind"].to_pylist()) <= {"pos", "neg"}
    assert np.array_equal(out["pt"], A)
    run("predict", tmp_path / "net", bare, "--out", tmp_path / f"p{suffix}", "--probabilities", "--overwrite")
    out = table(tmp_path / f"p{suffix}")
    shares = np.stack([out["p_neg"], out["p_pos"]])
    assert np.allclose(shares.sum(0), 1)
    assert (np.array(["neg", "pos"])[shares.argmax(0)] == np.array(out["kind"].to_pylist())).all()
    message = run("predict", tmp_path / "net", bare, "--features", "eta,pt", "--out", tmp_path / f"q{suffix}", code=2)
    assert "trained on pt, eta, in this order" in message


def test_a_column_is_read_as_one_thing(tmp_path):
    file = write(tmp_path / "xyz.parquet", set=IDS, x=A, y=B, z=C, energy=A + B + C)
    sets = read(file, Reading(features=("x", "y", "z"), targets=("energy",)))
    assert sets.columns == Columns("set", ("x", "y", "z"), ("energy",))
    with pytest.raises(FileFormatError, match="has no targets"):
        read(file, Reading(features=("x", "y", "z")))
    with pytest.raises(InputError, match="column y can be the set, a feature or a target"):
        read(file, Reading(features=("x", "y"), targets=("y",)))
    np.savez(tmp_path / "a.npz", x=np.ones((2, 1, 1)), y=np.ones(2))
    with pytest.raises(InputError, match="names of columns are for tables"):
        read(tmp_path / "a.npz", Reading(features=("x",)))


def test_predictions_go_to_columns_of_the_network_and_to_none_that_is_read(tmp_path):
    one = write(tmp_path / "one.parquet", set=IDS, x0=A, x1=B, y=A)
    two = write(tmp_path / "two.parquet", set=IDS, x0=A, x1=B, y0=A, y1=B)
    empty = write(tmp_path / "empty.parquet", set=IDS, x0=A, x1=B, y=pa.nulls(len(A), pa.float64()))
    for name, file in (("one", one), ("two", two)):
        run("fit", file, "--out", tmp_path / name, *QUICK)
    for net, file, columns in (
        ("two", one, ["set", "x0", "x1", "y", "y0", "y1"]),
        ("one", two, ["set", "x0", "x1", "y0", "y1", "y"]),
        ("one", empty, ["set", "x0", "x1", "y"]),
    ):
        run("predict", tmp_path / net, file, "--out", tmp_path / "p.parquet", "--overwrite")
        out = table(tmp_path / "p.parquet")
        assert out.column_names == columns
        assert not any(out[name].null_count for name in columns)
    common = ("predict", tmp_path / "one", one, "--out", tmp_path / "p.parquet", "--overwrite", "--targets")
    assert "column x0 is read; name the predictions otherwise" in run(*common, "x0", code=2)
    assert "expected 1 names of columns" in run(*common, "a,b", code=2)


def test_probabilities_take_the_place_of_no_other_column(tmp_path):
    labels = np.where(IDS % 2, "b", "a")
    file = write(tmp_path / "t.csv", set=IDS, p_a=A, x=B, p_b=labels)
    for features, words in (("p_a,x", "column p_a is read"), ("x", "column p_b is for probabilities")):
        names = ("--features", features, "--targets", "p_b", "--overwrite")
        run("fit", file, *names, "--out", tmp_path / "net", *QUICK)
        common = ("predict", tmp_path / "net", file, "--probabilities", "--out")
        assert words in run(*common, tmp_path / "p.csv", code=2)
        assert not (tmp_path / "p.csv").exists()
    run(*common, tmp_path / "p.csv", "--targets", "label")
    out = table(tmp_path / "p.csv")
    assert out.column_names == ["set", "x", "label", "p_a", "p_b"]


@pytest.mark.parametrize(
    "ids", [[None, *map(str, IDS[1:])], [None, *map(int, IDS[1:])], [float("nan"), *IDS[1:] * 1.0]]
)
def test_a_token_without_a_set_is_refused(tmp_path, ids):
    file = write(tmp_path / "t.parquet", set=pa.array(ids, from_pandas=False), x=A, y=B)
    with pytest.raises(FileFormatError, match=r"column set has missing values: row 1 below the names$"):
        read(file)


def test_labels_of_a_dictionary_are_text(tmp_path):
    labels = pa.array(np.where(A > 0, "pos", "neg").tolist()).dictionary_encode()
    assert read(write(tmp_path / "t.parquet", set=IDS, x=A, y=labels)).task.classes == ("neg", "pos")


def test_text_that_is_not_utf_8_is_refused_before_training(tmp_path):
    file = tmp_path / "latin.csv"
    for column, text in (
        ("column y", "set,x,y\n" + "a,1.0,é\na,2.0,é\nb,3.0,o\n" * 5),
        ("column set", "set,x,y\n" + "é,1.0,2.5\no,2.0,3.5\n" * 5),
        ("names of columns", "set,x,y,é\na,1.0,2.5,0\nb,2.0,3.5,0\n"),
    ):
        file.write_text(text, encoding="latin-1")
        with pytest.raises(FileFormatError, match=rf"{column}.* not UTF-8; save the file as UTF-8"):
            read(file)
        file.write_text(text, encoding="utf-8")
        assert read(file).d == 1


def test_a_column_of_another_kind_is_named(tmp_path):
    days = np.datetime64("2020-01-01") + np.arange(len(A))
    for role, column, expected in (
        ("x1", days, "real numbers, got date32"),
        ("x1", np.where(A > 0, "pos", "neg"), "real numbers, got string"),
        ("y1", days, "numbers or text, got date32"),
        ("y1", [b"raw"] * len(A), "numbers or text, got binary"),
        ("set", [{"jet": 1}] * len(A), "numbers or text, got struct"),
    ):
        file = write(tmp_path / "t.parquet", **{"set": IDS, "x0": A, "x1": B, "y0": A, "y1": B} | {role: column})
        with pytest.raises(FileFormatError, match=f"column {role}: expected {expected}"):
            read(file)
    for names in (days, [b"%d" % i for i in IDS]):  # they only tell sets apart
        assert len(read(write(tmp_path / "t.parquet", set=names, x=A, y=B))) == len(set(names))


@pytest.mark.parametrize("column", ["set", "y"])
def test_an_empty_cell_of_text_is_missing_in_a_csv(tmp_path, column):
    names = {"set": [f"jet {i}" for i in IDS], "y": np.where(IDS % 2, "odd", "even").tolist()}
    whole = read(write(tmp_path / "t.csv", x=A, **names))
    assert (len(whole), whole.task.classes, whole.task.per_token) == (30, ("even", "odd"), False)
    names[column][3] = names[column][9] = ""
    with pytest.raises(FileFormatError, match=f"column {column} has missing values: row 4 below the names and 1 more"):
        read(write(tmp_path / "t.csv", x=A, **names))
    assert read(write(tmp_path / "t.parquet", x=A, **names)).task.kind == "classification"  # there null is missing


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("jet;pt;y", "separated by ';', where a comma is expected"),
        ("jet\tpt\ty", r"separated by '\\t', where a comma is expected"),
        ("jet, pt,y", "missing pt; the columns are jet, ' pt', y;"),
        ("jet,pt,pt", "has more than one column pt"),
    ],
)
def test_names_that_are_written_otherwise_are_shown_as_they_are(tmp_path, names, said):
    file = tmp_path / "t.csv"
    file.write_text(f"{names}\n" + "a,1.0,2.5\nb,2.0,3.5\n".replace(",", names[3]))
    with pytest.raises(FileFormatError, match=said):
        read(file, Reading(set_column="jet", features=("pt",)))

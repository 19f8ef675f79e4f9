"""`trace`, `sizes`, and `construct --as deep-transformer | sparse-transformer`, as a user calls them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_trace_as_a_table_and_a_picture(tmp_path):
    picture = tmp_path / "trace.png"
    text = run("trace", "-n", "3", "-q", "4", "--out", str(picture)).output
    assert "δ^{-d} + 1 = 5" in text
    assert "40863" in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_trace_as_json():
    found = json.loads(run("trace", "-n", "2", "-q", "2", "--input", "0.1 0.9", "--json").output)
    assert [layer["ids"] for layer in found["layers"]] == [["0", "1"], ["2", "1"], ["2", "3"], ["26", "27"]]
    assert found["attention_layers"] == 3
    strided = json.loads(run("trace", "-n", "4", "-q", "2", "--pattern", "strided:2", "--json").output)
    assert strided["attention_layers"] == 2 * 3 * 2 + 2
    placed = json.loads(run("trace", "-n", "4", "-q", "2", "--positions", "--json").output)
    assert placed["attention_layers"] == 4 * 2 + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "0.1 zwei"], "expected tokens as"),
        (["--input", "0.1 0.2", "-n", "3"], "expected 3 tokens"),
        (["--pattern", "window:0"], "Assumption 1"),
        (["--pattern", "circle:1"], "expected one of window"),
    ],
)
def test_trace_says_what_is_wrong(arguments, said):
    assert said in " ".join(run("trace", *arguments, "--json", code=2).output.split())


def test_construct_and_verify(tmp_path):
    out = str(tmp_path / "net")
    common = ["--tokens", "2", "--epsilon", "0.5", "--as", "deep-transformer"]
    text = run("construct", "x+mean(y)", *common, "-o", out).output
    assert "d_1(f, N) is at most" in text
    assert "δ^{-d} + 1" in text
    found = json.loads(run("verify", out, "--json").output)
    assert found["verified"]
    assert found["observed_error"] <= found["certified_error"] <= 0.5


def test_construct_sparse_with_a_pattern_and_p():
    common = ["--tokens", "3", "--epsilon", "0.9", "--as", "sparse-transformer", "--norm-p", "2", "--pattern", "star:1"]
    found = json.loads(run("construct", "x+mean(y)", *common, "--json").output)
    assert found["norm"] == "d_2"
    assert found["observed_error"] <= found["certified_error"] <= 0.9
    assert found["attention_layers"] == found["layers"][1]["count"]


def test_the_zero_network_is_announced():
    text = run("construct", "x+mean(y)", "--tokens", "2", "--epsilon", "3", "--as", "deep-transformer").output
    assert "the zero network suffices" in " ".join(text.split())


def test_sizes_built_and_counted(tmp_path):
    picture = tmp_path / "sizes.png"
    arguments = ["x+mean(y)", "--tokens", "2", "--epsilon", "0.5,0.001", "--out", str(picture), "--json"]
    found = json.loads(run("sizes", *arguments).output)
    rows = {(row["name"], row["epsilon"]): row for row in found["rows"]}
    assert picture.read_bytes().startswith(b"\x89PNG")
    built, counted = rows["deep-transformer", 0.5], rows["deep-transformer", 0.001]
    assert (built["how"], counted["how"]) == ("built", "formula")
    assert rows["sumformer, sums", 0.001]["attention_layers"] == 0
    q = int(counted["note"].split("1/")[1].split(",")[0])
    assert counted["attention_layers"] == q + 1
    assert counted["feed_forward_layers"] >= (q + 1) + 2 + q * (q - 1)
    assert rows["sparse-transformer", 0.001]["attention_layers"] < counted["attention_layers"]


def test_sizes_as_a_table():
    text = run("sizes", "x+mean(y)", "--tokens", "2", "--epsilon", "1,0.001").output
    assert "deep-transformer" in text
    assert "token-wise layers and weights are at most so many" in " ".join(text.split())
    assert "expected positive numbers" in run("sizes", "x+mean(y)", "--epsilon", "0,x", "--json", code=2).output

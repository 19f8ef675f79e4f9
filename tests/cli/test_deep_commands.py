"""`trace`, `sizes`, and `construct --as deep-transformer | sparse-transformer`, as a user calls them."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from sumformer import load
from sumformer.cli.app import app
from sumformer.experiments.contextual_trace import plot as staircase
from sumformer.experiments.sizes_picture import plot as sizes_picture
from sumformer.theorems.yun_2020_deep.plan import equivariant_plan
from sumformer.theorems.yun_2020_deep.trace import spread_tokens, trace


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


def test_trace_reads_n_and_d_from_its_input():
    found = json.loads(run("trace", "--input", "0.9,0.2 0.1,0.4", "-q", "2", "--json").output)
    assert (found["n"], found["d"]) == (2, 2)
    assert found["tokens"] == [["9/10", "1/5"], ["1/10", "2/5"]]


def test_the_picture_of_a_trace_ends_at_the_last_layer():
    plan = equivariant_plan(3, 1)
    grid = plan.grid(4)
    axes = staircase(trace(grid, plan.contextual(grid, 1), spread_tokens(3, 1))).axes[0]
    for line in axes.lines:
        assert (min(line.get_xdata()), max(line.get_xdata())) == (0, 5)
    assert len(axes.lines) == 3


def test_tokens_of_one_cell_share_the_dashes_of_their_line():
    plan = equivariant_plan(3, 1)
    grid = plan.grid(4)
    found = trace(grid, plan.contextual(grid, 1), [[Fraction(9, 10)], [Fraction(1, 10)], [Fraction(1, 5)]])
    assert [line.is_dashed() for line in staircase(found).axes[0].lines] == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "0.1 zwei"], "expected two tokens or more"),
        (["--input", "0.1"], "expected two tokens or more"),
        (["--input", "0.1,0.2 0.3"], "expected two tokens or more"),
        (["--input", "0.1 0.2", "-n", "3"], "2 tokens of width 1, but -n 3 was given"),
        (["--input", "0.1 0.2", "-d", "2"], "2 tokens of width 1, but -d 2 was given"),
        (["--input", "0.1 1.2"], "expected numbers from 0 to 1"),
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
    assert "width 1" in text
    assert "latent dimension" not in text
    assert "softmax │ proved │ < 1e-300" in re.sub(" +", " ", text)
    steps = {step: int(count) for step, count in re.findall(r"(?m)^([a-z -]+): (\d+) layers", text)}
    attention, token_wise = map(int, re.search(r"(\d+) attention layers and (\d+) token-wise", text).groups())
    assert steps.pop("contextual mapping") == attention
    assert sum(steps.values()) == token_wise
    assert "width = 1)" in repr(load(out))
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


def test_sizes_with_positions():
    """nδ^{-d} + 1 attention layers, and the one of compiled networks, whose places come from outside."""
    found = json.loads(run("sizes", "x/i+mean(y)", "-n", "2", "-e", "0.4", "--positions", "--json").output)
    rows = {row["name"]: row for row in found["rows"]}
    assert found["d"] == 1
    cells = int(rows["deep-transformer"]["note"].removeprefix("δ = 1/"))
    assert rows["deep-transformer"]["attention_layers"] == 2 * cells + 1
    assert {rows[name]["attention_layers"] for name in ("transformer", "linformer", "performer")} == {1}
    assert rows["sparse-transformer"]["how"] == "built"


def test_lines_that_coincide_are_all_seen():
    rows = [
        {"name": name, "epsilon": e, "how": "built", "attention_layers": 1, "parameters": k}
        for k, name in enumerate(("one", "two"))
        for e in (0.5, 0.1)
    ]
    attention, parameters = sizes_picture(rows, "").axes
    assert [line.get_linestyle() for line in attention.lines if len(line.get_xdata())] == ["--", "--"]
    assert [line.get_linestyle() for line in parameters.lines if len(line.get_xdata())] == ["-", "-"]
    areas = [points.get_sizes()[0] for points in attention.collections]
    assert areas[0] == areas[1] > areas[2] == areas[3]
    assert attention.get_legend() is None  # it lies under the panels, not in one


def test_sizes_as_a_table():
    text = run("sizes", "x+mean(y)", "--tokens", "2", "--epsilon", "1,0.001").output
    assert "deep-transformer" in text
    assert "width: numbers per token between layers" in text
    assert "token-wise layers and weights are at most so many" in " ".join(text.split())
    assert "expected positive numbers" in run("sizes", "x+mean(y)", "--epsilon", "0,x", "--json", code=2).output

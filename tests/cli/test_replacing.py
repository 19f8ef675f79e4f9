"""What `construct`, `compare`, `bench` and `reproduce` replace in `--out`, and what only with `--overwrite`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("more", [[], ["--as", "all"]])
def test_another_target_is_replaced_on_request_only(tmp_path: Path, more: list[str]) -> None:
    out = ["--out", str(tmp_path / "net"), "--no-report", *more]
    assert run("construct", "x*mean(y)", *out)[0] == 0
    held = {path: path.read_bytes() for path in (tmp_path / "net").rglob("*") if path.is_file()}
    code, text = run("construct", "x - mean(y)", *out)
    assert code == 2
    assert "x*mean(y): --overwrite" in text
    assert held == {path: path.read_bytes() for path in (tmp_path / "net").rglob("*") if path.is_file()}
    assert run("construct", "x*mean(y)", "--epsilon", "0.01", *out)[0] == 0
    assert run("construct", "x - mean(y)", "--overwrite", *out)[0] == 0


def test_a_damaged_certificate_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{")
    code, text = run("construct", "x*mean(y)", "--out", str(tmp_path), "--no-report")
    assert code == 2
    assert "--overwrite" in text


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["compare", "target:mean(y)", "--sets", "20"], "comparison.json"),
        (["compare", "target:mean(y)", "--sets", "20"], "report.html"),
        *((["bench", "--longest", "256"], f"bench.{kind}") for kind in ("json", "png")),
        *((["reproduce", "figure-1", "--size", "tiny"], f"figure-1.{kind}") for kind in ("json", "csv", "png")),
    ],
)
def test_results_of_an_earlier_run_are_kept(tmp_path: Path, words: list[str], name: str) -> None:
    (tmp_path / name).write_text("mine")
    code, text = run(*words, "--out", str(tmp_path))
    assert code == 2
    assert f"holds {name} already: --overwrite replaces it, or give another --out" in text
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "mine")]


def test_only_what_is_written_is_in_the_way(tmp_path: Path) -> None:
    stored = Path(__file__).parents[2] / "experiments" / "results" / "alternatives.json"
    for name in ("alternatives.json", "figure-1.png"):
        (tmp_path / name).write_text("mine")
    words = ["reproduce", "alternatives", "--redraw", str(stored), "--out", str(tmp_path)]
    assert run(*words)[0] == 0
    drawn = (tmp_path / "alternatives.png").stat().st_mtime_ns
    code, text = run(*words)
    assert code == 2
    assert "holds alternatives.png already" in text
    assert (tmp_path / "alternatives.png").stat().st_mtime_ns == drawn
    assert run(*words, "--overwrite")[0] == 0
    assert (tmp_path / "alternatives.png").stat().st_mtime_ns > drawn
    assert {(tmp_path / name).read_text() for name in ("alternatives.json", "figure-1.png")} == {"mine"}


def test_a_benchmark_without_out_is_written_beside_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sumformer.cli.bench.run", lambda config, tell: {"rows": [], "ratios": [], "missing": {}})
    monkeypatch.setattr("sumformer.cli.bench.draw", lambda result, path: path.write_bytes(b""))
    code, text = run("bench")
    assert code == 0
    assert "written to bench-output" in text
    assert sorted(path.name for path in (tmp_path / "bench-output").iterdir()) == ["bench.json", "bench.png"]
    assert run("bench")[0] == 2

"""What `fit`, `predict` and `compare` leave behind, and what they say of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

QUICK = ("--hidden", "8", "--depth", "1", "--latent", "4", "--epochs", "3")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    x, lengths = rng.normal(size=(80, 6, 2)), rng.integers(1, 7, size=80)
    np.savez(folder / "tokens.npz", x=x, y=x - x.mean(1, keepdims=True))
    np.savez(folder / "padded.npz", x=x, y=x[..., 0], lengths=lengths)
    np.savez(folder / "classes.npz", x=x + 6 * (np.arange(80) % 2)[:, None, None], y=np.arange(80) % 2)
    return folder


def arrays(file):
    with np.load(file) as opened:
        return dict(opened)


def test_a_loss_that_is_nan_at_once_says_what_is_there(data, tmp_path):
    out = tmp_path / "out"
    result = run("fit", data / "tokens.npz", "--out", out, *QUICK, "--learning-rate", "1e20", code=2)
    said = " ".join(result.stderr.split())
    assert "The best weights so far, those before training, are saved in" in said
    run("predict", out, data / "tokens.npz", "--out", tmp_path / "p.npz")


def test_a_fit_that_is_worth_nothing_says_so_everywhere(data, tmp_path):
    common = ("fit", data / "tokens.npz", *QUICK, "--learning-rate", "30", "--out", tmp_path)
    shown = " ".join(run(*common).stdout.split())
    assert "warning: no epoch improved the validation loss" in shown
    assert "Try a learning rate below 30" in shown
    assert "Warning: no epoch improved the validation loss" in (tmp_path / "report.html").read_text()
    assert json.loads(run(*common, "--overwrite", "--no-report", "--json").stdout)["warning"].startswith(
        "no epoch improved"
    )


def test_no_error_at_all(data, tmp_path):
    arguments = ("fit", data / "classes.npz", "--hidden", "8", "--depth", "1", "--epochs", "30", "--out", tmp_path)
    shown = " ".join(run(*arguments).stdout.split())
    assert "95 % from 0 to" in shown
    assert "none has an error" in shown
    assert "No held-out set has an error." in (tmp_path / "report.html").read_text()


def test_a_folder_in_use_is_answered_by_options(data, tmp_path):
    common = ("fit", data / "tokens.npz", *QUICK, "--no-report", "--out", tmp_path)
    run(*common)
    said = " ".join(run(*common, code=2).stderr.split())
    assert "go on with --resume, or begin anew over it with --overwrite" in said
    assert "Folder(" not in said


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_predictions_of_sampled_sets_carry_the_sets(tmp_path, kind):
    formula, file = "x - mean(y)", tmp_path / f"p.{kind}"
    run("fit", f"target:{formula}", "--sets", "60", *QUICK, "--no-report", "--out", tmp_path / "net")
    run("predict", tmp_path / "net", f"target:{formula}", "--sets", "20", "--tokens", "7", "--out", file)
    if kind == "npz":
        found = arrays(file)
    else:
        from safetensors.numpy import load_file

        found = load_file(file)
    assert set(found) == {"x", "y"}
    assert found["x"].shape == (20, 7, 1)
    again = tmp_path / "again.npz"
    np.savez(tmp_path / "x.npz", x=found["x"])
    run("predict", tmp_path / "net", tmp_path / "x.npz", "--out", again)
    assert set(arrays(again)) == {"y"}
    assert (arrays(again)["y"] == found["y"]).all()


def test_predictions_of_padded_sets_carry_the_mask(data, tmp_path):
    run("fit", data / "padded.npz", *QUICK, "--no-report", "--out", tmp_path / "net")
    run("predict", tmp_path / "net", data / "padded.npz", "--out", tmp_path / "p.npz")
    found, lengths = arrays(tmp_path / "p.npz"), arrays(data / "padded.npz")["lengths"]
    assert set(found) == {"y", "mask"}
    assert (found["mask"] == (np.arange(6) < lengths[:, None])).all()


@pytest.mark.parametrize(("longest", "measured"), [(128, [6, 16, 64, 128]), (16, [6, 16]), (9, [6, 9])])
def test_compare_measures_as_far_as_it_was_asked(data, longest, measured):
    few = ("--as", "deep-sets", "--latents", "2", "--seeds", "1", "--epochs", "1", "--longest", longest)
    result = json.loads(run("compare", data / "tokens.npz", *few, "--parameters", "1500", "--json").stdout)
    assert [cost["n"] for cost in result["rows"][0]["costs"]] == measured


def test_compare_wants_a_number_of_tokens(data):
    assert "--longest" in run("compare", data / "tokens.npz", "--longest", "0", code=2).stderr


def test_the_table_of_many_lengths_is_shown_whole(data):
    few = ("--as", "polynomial-sumformer", "--latents", "2", "--seeds", "1", "--epochs", "1", "--longest", "10000")
    words = ["compare", str(data / "tokens.npz"), *few, "--parameters", "500"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
    assert "ms/set at n =" in result.stdout
    assert "MiB (8 × 10000)" in result.stdout
    assert "…" not in result.stdout

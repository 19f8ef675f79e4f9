"""A fit that is worth little says so, and one that diverges keeps what its message promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app
from sumformer.errors import DivergedError
from sumformer.learn import Folder, Reading, Sampling, Settings, fit, load_fitted, read, sets_from_arrays
from sumformer.learn.evaluation import _interval, examine, worst_places

QUICK = Settings(hidden=16, depth=1, latent=8, epochs=4, batch_size=16, seed=1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5, 2))
SETS = sets_from_arrays(X, X - X.mean(1, keepdims=True))


def test_a_loss_that_is_nan_at_once_leaves_a_network_that_predicts(tmp_path):
    with pytest.raises(DivergedError, match="those before training, are saved in") as caught:
        fit(SETS, replace(QUICK, learning_rate=1e20), tmp_path)
    kept = load_fitted(tmp_path)
    assert (kept.status, kept.best_epoch) == ("diverged", 0)
    assert np.isfinite(kept.predict(SETS)).all()
    assert (kept.predict(SETS) == caught.value.fitted.predict(SETS)).all()
    resumed = fit(SETS, QUICK, Folder(tmp_path, resume=True), changes={"learning_rate": 3e-3})
    assert resumed.status == "finished"


def test_without_a_folder_the_error_has_the_network_and_names_none():
    with pytest.raises(DivergedError) as caught:
        fit(SETS, replace(QUICK, learning_rate=1e20))
    assert "saved" not in str(caught.value)
    assert caught.value.fitted.status == "diverged"


def test_a_fit_that_is_no_better_than_a_constant_says_so(tmp_path):
    bad = fit(SETS, replace(QUICK, learning_rate=30.0), tmp_path)
    assert bad.best_epoch == 0
    assert "the weights are those before training" in bad.warning
    assert "is not below the best constant's" in bad.warning
    assert "Try a learning rate below 30, more epochs" in bad.warning
    assert load_fitted(tmp_path).warning == bad.warning
    good = fit(SETS, replace(QUICK, epochs=30))
    assert good.warning == ""
    assert good.history[good.best_epoch]["validation"] < good.constant_loss


def test_noise_is_no_better_than_a_constant():
    sets = sets_from_arrays(X, RNG.normal(size=120))
    fitted = fit(sets, replace(QUICK, epochs=1, learning_rate=1e-6))
    assert fitted.best_epoch == 1
    assert fitted.warning.startswith("the validation loss, ")


def test_a_target_that_never_changes_is_worth_a_warning():
    fitted = fit(sets_from_arrays(X, np.ones(120)), QUICK)
    assert fitted.constant_loss == 0.0
    assert "is not below the best constant's, 0. Try" in fitted.warning


def test_the_loss_of_the_constant_is_that_of_the_training_mean_and_shares():
    """Nothing held out: all sets train and validate, so of numbers it is 1, of labels nearly their entropy."""
    settings = replace(QUICK, epochs=1, validation=0.0, test=0.0)
    lengths = RNG.integers(1, 6, size=120)
    assert fit(sets_from_arrays(X, X, lengths=lengths), settings).constant_loss == pytest.approx(1.0, abs=1e-5)
    labels = np.arange(120) % 4 == 0
    share = np.array([31, 91]) / 122  # one more of each class
    wanted = -(0.25 * np.log(share[0]) + 0.75 * np.log(share[1]))
    assert fit(sets_from_arrays(X, labels), settings).constant_loss == pytest.approx(wanted, abs=1e-5)
    each = np.broadcast_to(labels[:, None], (120, 5))
    real = sets_from_arrays(X, each, lengths=lengths, task="classification")
    counts = np.array([(lengths * ~labels).sum(), (lengths * labels).sum()])
    shares = (counts + 1) / (counts + 1).sum()
    found = fit(real, settings).constant_loss
    assert found == pytest.approx(float(-(counts / counts.sum() * np.log(shares)).sum()), abs=1e-5)


def test_a_start_that_is_not_improved_is_called_a_start(tmp_path):
    sumformer.construct("mean(exp(-norm2(x-y)))", 1e-3, n=6).save(tmp_path)
    sets = read("target:mean(exp(-norm2(x-y)))", Reading(sampling=Sampling(sets=60, tokens=6)))
    fitted = fit(sets, Settings(start=str(tmp_path), epochs=2, learning_rate=1.0))
    assert fitted.best_epoch == 0
    assert fitted.warning == (
        "no epoch improved the validation loss, so the weights are those it started from. "
        "Try a learning rate below 1, more epochs"
    )


@pytest.mark.parametrize("wrong", range(3))
@pytest.mark.parametrize("count", [7, 12, 30, 150])
def test_an_interval_holds_its_own_error(wrong, count):
    sums = torch.zeros(count, dtype=torch.float64)
    sums[:wrong] = 1.0
    for share in (sums, 1 - sums):
        low, high = _interval(share, torch.ones_like(share), square=False, wilson=True)
        assert 0 <= low <= float(share.sum() / count) <= high <= 1
    one_far = torch.full((count,), 1e-12, dtype=torch.float64)
    one_far[0] = 1e12
    for square in (False, True):
        low, high = _interval(one_far, torch.ones_like(one_far), square=square, wilson=False)
        error = float(one_far.sum() / count)
        assert low <= (error**0.5 if square else error) <= high


def test_a_single_set_says_nothing_of_others(tmp_path):
    x = np.random.default_rng(0).normal(size=(5, 4, 1))
    np.savez(tmp_path / "five.npz", x=x, y=x.sum((1, 2)))
    shown = CliRunner().invoke(
        app, ["fit", str(tmp_path / "five.npz"), "--out", str(tmp_path / "net"), "--epochs", "1"]
    )
    assert shown.exit_code == 0, shown.output
    assert "95 %" not in shown.output
    assert "Error on 1 held-out sets: " in (tmp_path / "net" / "report.html").read_text(encoding="utf-8")
    assert load_fitted(tmp_path / "net").report["interval"] is None


def test_a_set_without_an_error_is_not_among_the_worst():
    assert worst_places(torch.tensor([0.0, 2.0, 0.0, 3.0]), 3) == [3, 1]
    assert worst_places(torch.tensor([0.0, 2.0, float("nan")]), 5) == [2, 1]
    x = X + 6 * (np.arange(120) % 2)[:, None, None]
    fitted = fit(sets_from_arrays(x, np.arange(120) % 2), replace(QUICK, epochs=20))
    report = examine(fitted, sets_from_arrays(x, np.arange(120) % 2)).report
    assert report["error"] == 0
    assert report["interval"][0] == 0
    assert report["worst"] == []

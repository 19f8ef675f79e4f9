"""A run: useful, repeatable, stoppable, and whatever goes wrong, a message and the last good state."""

from __future__ import annotations

import errno
import json
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

import sumformer
from sumformer.errors import FileFormatError, InputError, NotSupportedError, TrainingError
from sumformer.learn import Folder, Reading, Sampling, Settings, fit, load_fitted, read, sets_from_arrays
from sumformer.learn import files as files_module
from sumformer.learn.architectures import ARCHITECTURES
from sumformer.learn.evaluation import examine
from sumformer.learn.fitting import split_of
from sumformer.testing import padding_error

QUICK = Settings(hidden=16, depth=1, latent=8, epochs=4, batch_size=16, seed=1)


@pytest.fixture(autouse=True)
def ctrl_c():
    """Python's own handler, also where the tests were started in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def sets():
    return read("target:x*mean(y) + mean(x*y)**2", Reading(sampling=Sampling(sets=120, tokens=6)))


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_it_learns_and_says_how_well():
    sets = read("target:mean(exp(-4*norm2(x-y)))", Reading(sampling=Sampling(sets=300, tokens=8, dim=2)))
    fitted = fit(sets, Settings(hidden=32, epochs=60))
    places = split_of(sets, fitted.settings).test
    report = examine(fitted, sets.subset(places), places).report
    assert report["error"] < 0.35 < 0.8 < report["baseline"]
    assert report["interval"][0] < report["error"] < report["interval"][1]
    assert report["r2"][0] == pytest.approx(1 - (report["error"] / report["baseline"]) ** 2, abs=0.02)
    assert report["equivariance_error"] < 1e-5
    worst = report["worst"][0]
    truth = sets.y[worst["set"]]
    got = torch.from_numpy(fitted.predict(sets.subset(torch.tensor([worst["set"]]))))[0]
    scale = fitted.standardisation.y.scale[0]
    assert worst["error"] == pytest.approx(float(((got - truth) / scale).square().mean().sqrt()))


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("per", ["token", "set"])
def test_every_architecture_takes_padded_tokens_and_both_kinds_of_target(name, per, tmp_path):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(rng.integers(1, 7), 2)) for _ in range(40)]
    y = [a.sum(1) for a in x] if per == "token" else np.array([a.sum() for a in x])
    data = sets_from_arrays(x, y, per=per)
    fitted = fit(data, replace(QUICK, architecture=name, epochs=1), tmp_path)
    assert fitted.history[-1]["train"] < float("inf")
    padded = fitted.predict(data)
    for i in (0, 7):  # padding changes nothing
        alone = fitted.predict(sets_from_arrays([x[i]]))[0]
        shown = padded[i, : len(x[i])] if per == "token" else padded[i]
        assert alone == pytest.approx(shown, rel=1e-4, abs=1e-5)
    again = load_fitted(tmp_path)
    assert (again.predict(data) == padded).all()
    probe = torch.randn(2, 5, 2)
    assert padding_error(again.network.requires_grad_(True), probe, paddings=(1, 3)).worst < 1e-4


def test_equal_seeds_equal_bits_other_seeds_not(sets, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(sets, replace(QUICK, seed=seed), tmp_path / name)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def test_a_stop_saves_and_resuming_ends_in_the_same_bits(sets, tmp_path):
    def interrupt(progress):
        if progress.epoch == 2:
            signal.raise_signal(signal.SIGINT)

    stopped = fit(sets, QUICK, Folder(tmp_path / "a"), report=interrupt)
    assert stopped.status == "stopped"
    assert len(stopped.history) == 3
    assert load_fitted(tmp_path / "a").predict(sets).shape == tuple(sets.y.shape)
    resumed = fit(sets, QUICK, Folder(tmp_path / "a", resume=True))
    assert resumed.status == "finished"
    assert resumed.history == fit(sets, QUICK, tmp_path / "b").history
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_folder_ctrl_c_is_what_it_always_is(sets):
    with pytest.raises(KeyboardInterrupt):
        fit(sets, QUICK, report=lambda progress: signal.raise_signal(signal.SIGINT))


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_two_threads_repeat_themselves(name):
    sets = read("target:x*mean(y)", Reading(sampling=Sampling(sets=60, tokens=64, dim=2)))
    settings = Settings(name, hidden=128, epochs=3, batch_size=16, threads=2)
    first, second = fit(sets, settings), fit(sets, settings)
    assert first.history == second.history
    assert (first.predict(sets) == second.predict(sets)).all()


def test_a_finished_run_is_not_run_again_and_not_overwritten_by_accident(sets, tmp_path):
    fit(sets, QUICK, tmp_path)
    with pytest.raises(InputError, match=r"go on with Folder\(…, resume=True\), or begin anew"):
        fit(sets, QUICK, tmp_path)

    def never(progress):
        raise AssertionError("there is nothing left to train")

    assert fit(sets, QUICK, Folder(tmp_path, resume=True), report=never).status == "finished"
    longer = fit(sets, QUICK, Folder(tmp_path, resume=True), changes={"epochs": 6})
    assert len(longer.history) == 7
    with pytest.raises(InputError, match="begun with hidden = 16"):
        fit(sets, QUICK, Folder(tmp_path, resume=True), changes={"hidden": 8})
    other = read("target:mean(y)", Reading(sampling=Sampling(sets=120, tokens=6)))
    with pytest.raises(InputError, match="other data"):
        fit(other, QUICK, Folder(tmp_path, resume=True))
    assert fit(sets, replace(QUICK, epochs=1), Folder(tmp_path, overwrite=True)).settings.epochs == 1


def test_beginning_anew_leaves_no_certificate_or_report_of_another_network(sets, tmp_path):
    sumformer.construct("x - mean(y)", 0.1).save(tmp_path)
    (tmp_path / "report.html").write_text("of x - mean(y)")
    with pytest.raises(InputError, match=r"certificate.json, report.html already: begin anew over it"):
        fit(sets, QUICK, tmp_path)
    fit(sets, replace(QUICK, epochs=1), Folder(tmp_path, overwrite=True))
    assert not (tmp_path / "certificate.json").exists()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    "asked", [{"architecture": "transformer", "hidden": 10}, {"parameters": 10}, {"start": "none"}]
)
def test_a_run_that_cannot_begin_leaves_all_as_it_was(sets, tmp_path, asked):
    fit(sets, replace(QUICK, epochs=1), tmp_path / "good")
    before = {path.name: path.read_bytes() for path in (tmp_path / "good").iterdir()}
    for place in (Folder(tmp_path / "good", overwrite=True), Folder(tmp_path / "new")):
        with pytest.raises((InputError, FileFormatError, NotSupportedError)):
            fit(sets, replace(QUICK, **asked), place)
    assert {path.name: path.read_bytes() for path in (tmp_path / "good").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_a_network_is_not_trained_over_itself(sets, tmp_path):
    sumformer.construct("mean(exp(-norm2(x-y)))", 1e-3, n=6).save(tmp_path)
    with pytest.raises(InputError, match="is what to start from"):
        fit(sets, Settings(start=str(tmp_path)), Folder(str(tmp_path), overwrite=True))
    assert (tmp_path / "certificate.json").exists()


def test_a_resumed_run_says_so_when_asked_for_another(sets, tmp_path):
    fit(sets, QUICK, tmp_path)
    with pytest.raises(InputError, match="begun with architecture = 'mlp-sumformer'"):
        fit(sets, replace(QUICK, architecture="transformer"), Folder(tmp_path, resume=True))
    assert fit(sets, None, Folder(tmp_path, resume=True)).settings.hidden == 16
    assert len(fit(sets, replace(QUICK, epochs=6), Folder(tmp_path, resume=True)).history) == 7


def test_numbers_of_numpy_are_numbers():
    settings = Settings(hidden=np.int64(8), learning_rate=np.float32(0.5))
    assert (type(settings.hidden), type(settings.learning_rate)) == (int, float)
    assert json.dumps(settings.to_data())


@pytest.mark.parametrize("wrong", [{"hidden": 8.5}, {"hidden": True}, {"learning_rate": "0.1"}, {"device": None}])
def test_what_is_no_number_is_named(wrong):
    with pytest.raises(InputError, match=f"cannot use {next(iter(wrong))} = "):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"epochs": 0}, r"epochs = 0 \(at least 1\)$"),
        ({"hidden": 8.5}, r"hidden = 8.5 \(a whole number\)$"),
        ({"learning_rate": -1}, r"learning_rate = -1.0 \(above 0\)$"),
        ({"validation": 1.5}, r"validation = 1.5 \(a share, 0 ≤ validation < 1\)$"),
        ({"validation": 0.6, "test": 0.5}, r"validation \+ test = 1.1, which leaves nothing"),
    ],
)
def test_what_is_out_of_range_is_named_with_its_range(wrong, expected):
    with pytest.raises(InputError, match=expected):
        Settings(**wrong)


def test_a_sample_of_nothing_names_the_options():
    with pytest.raises(InputError, match=r"one set \(--sets\) of one token \(--tokens\), got 0 sets of 10 tokens"):
        read("target:mean(y)", Reading(sampling=Sampling(sets=0)))


def test_early_stopping_keeps_the_best_epoch(sets):
    fitted = fit(sets, replace(QUICK, epochs=200, patience=2, learning_rate=0.05))
    losses = [h["validation"] for h in fitted.history]
    assert len(losses) < 201
    assert losses.index(min(losses)) == fitted.best_epoch == len(losses) - 3


def test_a_loss_that_is_not_finite_is_a_message_and_the_last_good_state_stays(sets, tmp_path):
    fit(sets, QUICK, tmp_path)
    good = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(TrainingError, match=r"the loss became|weights became") as caught:
        fit(sets, QUICK, Folder(tmp_path, resume=True, save_every=0), changes={"epochs": 50, "learning_rate": 1e20})
    assert "smaller learning rate" in str(caught.value)
    saved = torch.isfinite(load_fitted(tmp_path).network.psi.from_token.weight)
    assert saved.all()
    assert load_fitted(tmp_path).status == "diverged"
    assert (tmp_path / "checkpoint.safetensors").stat().st_size >= len(good)
    resumed = fit(sets, QUICK, Folder(tmp_path, resume=True), changes={"learning_rate": 1e-3})
    assert resumed.status == "finished"
    assert len(resumed.history) > 5


def test_a_full_disk_keeps_the_checkpoint_before(sets, tmp_path, monkeypatch):
    def interrupt(progress):
        if progress.epoch == 2:
            signal.raise_signal(signal.SIGINT)

    fit(sets, QUICK, Folder(tmp_path), report=interrupt)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):  # the record is the first thing written
        fit(sets, QUICK, Folder(tmp_path, resume=True))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    monkeypatch.setattr("sumformer.learn.fitting.write_json", lambda *_: None)
    with pytest.raises(TrainingError, match="No space left on device; the checkpoint before it is kept"):
        fit(sets, QUICK, Folder(tmp_path, resume=True))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    monkeypatch.undo()
    assert fit(sets, QUICK, Folder(tmp_path, resume=True)).status == "finished"
    fit(sets, QUICK, tmp_path / "whole")
    assert weights(tmp_path) == weights(tmp_path / "whole")


def test_a_damaged_checkpoint_or_record_is_named(sets, tmp_path):
    fit(sets, QUICK, Folder(tmp_path), report=lambda p: signal.raise_signal(signal.SIGINT) if p.epoch == 2 else None)
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="damaged"):
        fit(sets, QUICK, Folder(tmp_path, resume=True))
    (tmp_path / "fit.json").write_text("{")
    with pytest.raises(FileFormatError, match="JSON"):
        load_fitted(tmp_path)
    with pytest.raises(FileFormatError, match="no such file"):
        load_fitted(tmp_path / "nowhere")


def test_a_parameter_budget_is_kept_and_used(sets):
    for name in ARCHITECTURES:
        fitted = fit(sets, replace(QUICK, architecture=name, parameters=3000, epochs=1))
        assert 1500 < sum(p.numel() for p in fitted.network.parameters()) <= 3000, name


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"validation": 0.5, "test": 0.5}, {"learning_rate": -1.0}, {"architecture": "lstm"}, {"seed": -1}],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        Settings(**wrong)


def test_a_constructed_network_is_a_start(tmp_path):
    sumformer.construct("mean(exp(-(x-y)**2))", 1e-2, n=6, box="0:1").save(tmp_path / "start")
    near = read("target:mean(exp(-1.2*(x-y)**2))", Reading(sampling=Sampling(sets=100, tokens=6)))
    settings = replace(QUICK, start=str(tmp_path / "start"), epochs=20, learning_rate=None)
    fitted = fit(near, settings, tmp_path / "out")
    first, best = fitted.history[0]["validation"], fitted.history[fitted.best_epoch]["validation"]
    assert first < 0.2  # near from the start
    assert best < 0.5 * first
    assert not (tmp_path / "out" / "certificate.json").exists()
    assert (load_fitted(tmp_path / "out").predict(near) == fitted.predict(near)).all()
    outside = read("target:mean(y)", Reading(sampling=Sampling(sets=30, tokens=6, box="0:2")))
    with pytest.raises(InputError, match="lie outside"):
        fit(outside, settings)
    with pytest.raises(InputError, match="tokens of width 1"):
        fit(read("target:mean(y)", Reading(sampling=Sampling(sets=30, tokens=6, dim=2))), settings)
    sumformer.construct("x*mean(y)", 1e-6, n=6).save(tmp_path / "exact")
    with pytest.raises(NotSupportedError, match="no coefficients to train"):
        fit(near, replace(settings, start=str(tmp_path / "exact")))


def test_the_record_has_every_derived_setting(sets, tmp_path):
    fit(sets, replace(QUICK, epochs=1), tmp_path)
    settings = json.loads((tmp_path / "training.json").read_text())["settings"]
    assert all(settings[name] is not None for name in ("epochs", "learning_rate", "patience", "threads"))

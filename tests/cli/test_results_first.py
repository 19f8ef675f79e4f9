"""A result is given where a picture cannot be drawn; what would be answered wrongly is refused."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app
from sumformer.errors import InputError, MissingDependencyError, RefusedError
from sumformer.learn.arrays import sets_from_arrays

runner = CliRunner()


def no_picture(*_):
    raise MissingDependencyError("matplotlib", "a picture", "plots")


def test_construct_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr("sumformer.experiments.construction_report.write_report", no_picture)
    found = runner.invoke(
        app, ["construct", "x-mean(y)", "--dim", "1", "--epsilon", "1e-3", "--out", str(tmp_path / "a")]
    )
    assert found.exit_code == 0
    assert "left out" in found.output
    assert "certified" in found.output
    assert (tmp_path / "a" / "certificate.json").is_file()


@pytest.mark.parametrize("text", ["0.9 2 0.1", "0.9 -0.1 0.1"])
def test_trace_stays_in_the_cube(text):
    found = runner.invoke(app, ["trace", "--input", text])
    assert found.exit_code == 2
    assert "from 0 to 1" in found.output


def test_a_mask_is_zero_or_one():
    with pytest.raises(InputError, match="got other values"):
        sets_from_arrays(np.zeros((4, 3, 1)), np.zeros(4), mask=np.full((4, 3), 0.5))


def test_a_converted_network_is_not_saved(tmp_path):
    c = sumformer.construct("x*mean(y)", 1e-4, n=3, architecture="transformer")
    c.network.half()
    with pytest.raises(InputError, match="converted"):
        c.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("source", ["exp(1000*x)", "1e308*mean(y)"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_beyond_float64_are_a_refusal(source):
    with pytest.raises(RefusedError):
        sumformer.construct(source, 0.4, n=2, architecture="transformer")

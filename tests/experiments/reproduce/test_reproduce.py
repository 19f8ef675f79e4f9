"""Every experiment runs in its smallest size, writes its three files, and can be read and drawn again."""

import csv
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sumformer.cli.app import app
from sumformer.errors import FileFormatError, InputError
from sumformer.experiments.reproduce import EXPERIMENTS, Outcome, copying, figure_1, figure_2, published
from sumformer.experiments.reproduce.registry import experiment
from sumformer.nn.patterns import Strided


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smallest_size_writes_json_csv_and_picture(name, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", name, "--size", "tiny", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    outcome = Outcome.read(tmp_path / f"{name}.json")
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        assert list(csv.DictReader(file))
    assert outcome.findings
    assert outcome.unsaid
    assert (tmp_path / f"{name}.png").stat().st_size > 5000
    (tmp_path / f"{name}.png").unlink()
    again = CliRunner().invoke(app, ["reproduce", name, "--redraw", str(tmp_path / f"{name}.json"), "--json"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["name"] == name
    assert (tmp_path / f"{name}.png").exists()


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(InputError, match="figure-2"):
        experiment("figure-3")
    with pytest.raises(InputError, match="reduced"):
        EXPERIMENTS["figure-1"].config("huge", "cpu")
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileFormatError):
        Outcome.read(tmp_path / "x.json")


def test_published_values_have_the_papers_shape():
    assert figure_1.published_curve("polynomial", "mlp")[1][-1] == 0.047
    heat = published.figure_2()
    assert len(heat) == 120
    assert heat[2048, 1] == 0.0094


def test_full_configurations_are_the_papers():
    one, two = figure_1.Config(), figure_2.Config()
    assert (one.n, one.d, one.d_latent, one.points, one.epochs, one.hidden, one.depth) == (5, 4, 125, 2000, 250, 50, 5)
    assert (two.n, two.dims[-1], two.latents[-1], two.points, two.epochs) == (3, 10, 2048, 2000, 200)
    assert len(two.dims) * len(two.latents) == 120
    assert copying.Config().n == 256


def test_figure_2_target_and_its_trivial_predictors():
    """The two relative errors quoted beside the heat map, by a large sample."""
    X = torch.rand(200_000, 3, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    Y = figure_2.g(X)
    x, a, b = X[0, :, 0]
    assert float(Y[0, 0, 0]) == pytest.approx(float(x + 7 * x**2 + 3 * x * (a + b) ** 3), rel=1e-12)
    constant = (Y - Y.mean()).norm() / Y.norm()
    assert float(constant) == pytest.approx(figure_2.CONSTANT, abs=3e-3)
    own = X + 7 * X**2 + 3 * X * 1.5  # E (a + b)³ = 1.5
    assert float((Y - own).norm() / Y.norm()) == pytest.approx(figure_2.OWN_ALONE, abs=3e-3)


def test_copying_masks_and_strings():
    config = copying.Config(half=8, symbols=5, stride=4, heads=2)
    X, s = copying.strings(config, 3, torch.Generator().manual_seed(0))
    assert X.shape == (3, 16)
    assert s.shape == (3, 7)
    assert torch.equal(X[:, 1:8], s)
    assert bool((X[:, 9:] == 6).all() & (X[:, [0, 8]] == 0).all() & (s >= 1).all() & (s <= 5).all())
    masks = copying.mask((Strided(4), "sequential"), config, 3)
    assert masks.shape == (3, 2, 16, 16)
    assert torch.equal(masks[0, 0], Strided(4).matrix(16, 0))
    assert torch.equal(masks[1, 1], Strided(4).matrix(16, 1))
    assert torch.equal(masks[2], masks[0])


def test_redrawing_wants_the_same_experiment_and_makes_the_folder(tmp_path):
    stored = Path(__file__).parents[3] / "experiments" / "results" / "alternatives.json"
    drawn = CliRunner().invoke(
        app, ["reproduce", "alternatives", "--redraw", str(stored), "--out", str(tmp_path / "a/b")]
    )
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "a/b/alternatives.png").exists()
    other = CliRunner().invoke(app, ["reproduce", "figure-1", "--redraw", str(stored), "--out", str(tmp_path)])
    assert other.exit_code != 0
    assert "alternatives" in other.output
    assert not (tmp_path / "figure-1.png").exists()

"""Each example runs, draws its picture, and learns something even when it is quick."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# What main returns, and what --quick must reach: an error relative to σ, a ratio of losses, two shares of right labels,
# errors over the certified ones.
REACHED = {
    "n_body": lambda error: error < 0.8,
    "density_map": lambda share: share <= 1.0,
    "gravity": lambda share: share <= 1.0,
    "distance_field": lambda share: share <= 1.0,
    "soft_rank": lambda ratio: ratio < 0.5,
    "gaussian_mixture": lambda share: share > 0.8,
    "digits": lambda share: share > 0.5,
    "mean_shift": lambda share: share <= 1.0,
}


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(REACHED)


@pytest.mark.parametrize("name", REACHED)
def test_an_example_runs(name, tmp_path):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert REACHED[name](module.main(True, tmp_path / "new" / "folder"))
    assert (tmp_path / "new" / "folder" / f"{name}.png").stat().st_size > 5000

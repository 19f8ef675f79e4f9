"""kill -9 at random moments, then resume: the same bits as without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("killed_runs.py")


def same_end(folder: Path, seed: int, kills: int) -> int:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(seed), str(kills)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    whole, killed = folder / "whole", folder / "killed"
    assert (whole / "model.safetensors").read_bytes() == (killed / "model.safetensors").read_bytes()
    first, second = (json.loads((f / "fit.json").read_text()) for f in (whole, killed))
    assert first["history"] == second["history"]
    assert first["best_epoch"] == second["best_epoch"]
    assert second["status"] == "finished"
    assert sorted(p.name for p in killed.iterdir()) == sorted(p.name for p in whole.iterdir())
    return json.loads(done.stdout)["killed"]


def test_killed_runs_end_in_the_same_bits(tmp_path):
    assert same_end(tmp_path, 0, 6) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_killed_often(tmp_path, seed):
    assert same_end(tmp_path, seed, 40) >= 5

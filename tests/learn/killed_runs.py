"""`python killed_runs.py FOLDER SEED KILLS`: one run undisturbed, one killed KILLS times at random moments; both saved.

Runs are forked from this process, which has torch loaded, so that a kill falls into training rather than into imports.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from sumformer.learn import Folder, Reading, Sampling, Settings, fit, read

EXPRESSION = "target:x*mean(y) + sin(mean(x*y))"


def run(folder: Path) -> None:
    sets = read(EXPRESSION, Reading(sampling=Sampling(sets=60, tokens=5)))
    settings = Settings(hidden=8, depth=1, latent=4, epochs=12, patience=3, batch_size=8, seed=3)
    fit(sets, settings, Folder(folder, resume=True, save_every=0.0))


def forked(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            run(folder)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def main(folder: Path, seed: int, kills: int) -> dict[str, int]:
    start = time.perf_counter()
    assert os.waitpid(forked(folder / "whole"), 0)[1] == 0
    span = time.perf_counter() - start
    draw = random.Random(seed)
    killed = 0
    while killed < kills:
        child = forked(folder / "killed")
        time.sleep(draw.uniform(0.0, 2 * span / kills))
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
    assert os.waitpid(forked(folder / "killed"), 0)[1] == 0
    return {"killed": killed}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))

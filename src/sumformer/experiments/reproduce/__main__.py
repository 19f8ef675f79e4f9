"""`python -m sumformer.experiments.reproduce NAME`: the same as `sumformer reproduce`, with torch and numpy alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from sumformer.experiments.reproduce.registry import EXPERIMENTS, experiment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(EXPERIMENTS))
    parser.add_argument("--size", choices=("full", "reduced", "tiny"), default="full")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    chosen = experiment(arguments.name)
    outcome = chosen.run(chosen.config(arguments.size, arguments.device), lambda text: print(text, flush=True))
    outcome.write(arguments.out)
    print(*outcome.findings, f"{outcome.seconds:.0f} s on {outcome.machine}", sep="\n")


if __name__ == "__main__":
    main()

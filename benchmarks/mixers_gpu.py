"""SumMixer on a GPU against SDPA and linear attention, in one run; needs torch and numpy only.

python benchmarks/mixers_gpu.py [--json FILE] [--picture FILE]      (a picture needs matplotlib; --draw FILE.json draws)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sumformer.experiments.gpu_bench import Config, draw, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", default=None)
    parser.add_argument("--picture", default=None)
    parser.add_argument("--draw", default=None, help="draw from this file instead of measuring")
    options = parser.parse_args()
    if options.draw:
        result = json.loads(Path(options.draw).read_text(encoding="utf-8"))
    else:
        result = run(Config(), lambda text: print(text, flush=True))
        result["command"] = "python benchmarks/mixers_gpu.py --json benchmarks/results/mixers_h200.json"
        print(json.dumps(result, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        draw(result, Path(options.picture))


if __name__ == "__main__":
    main()

"""One mixing layer on a GPU against what users would pick instead, in one run: milliseconds, memory, floors, ratios."""

from sumformer.experiments.gpu_bench.picture import draw as draw
from sumformer.experiments.gpu_bench.run import Config as Config
from sumformer.experiments.gpu_bench.run import run as run

"""Token mixers against their peers, in one run: seconds forward and forward + backward, peak memory, ratios."""

from sumformer.experiments.bench.contestants import CONTESTANTS as CONTESTANTS
from sumformer.experiments.bench.picture import draw as draw
from sumformer.experiments.bench.run import Config as Config
from sumformer.experiments.bench.run import run as run

"""Which architecture, with what latent dimension: all of them on the same data at equal parameter budget."""

from sumformer.experiments.comparison.page import write_comparison as write_comparison
from sumformer.experiments.comparison.run import Config as Config
from sumformer.experiments.comparison.run import run as run

"""The papers' experiments, one per file: Config → run → Outcome, and a picture beside the published one."""

from sumformer.experiments.reproduce.outcome import Outcome as Outcome
from sumformer.experiments.reproduce.registry import EXPERIMENTS as EXPERIMENTS
from sumformer.experiments.reproduce.registry import Experiment as Experiment

"""What a compiled network does with one input: every named value beside the ideal one, block by block."""

from sumformer.experiments.explain.run import Explanation as Explanation
from sumformer.experiments.explain.run import explain as explain

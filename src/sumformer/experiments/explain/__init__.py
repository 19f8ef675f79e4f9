"""What a constructed network does with one input: every named value beside the ideal one, part by part."""

from sumformer.experiments.explain.explanation import Explanation as Explanation
from sumformer.experiments.explain.run import explain as explain

"""Sparse patterns: who attends to whom."""

from sumformer.nn.patterns.assumption import AssumptionReport as AssumptionReport
from sumformer.nn.patterns.big_bird import BigBird as BigBird
from sumformer.nn.patterns.fixed import Fixed as Fixed
from sumformer.nn.patterns.longformer import Longformer as Longformer
from sumformer.nn.patterns.pattern import Composition as Composition
from sumformer.nn.patterns.pattern import Pattern as Pattern
from sumformer.nn.patterns.pattern import steps_of_heads as steps_of_heads
from sumformer.nn.patterns.random import Random as Random
from sumformer.nn.patterns.star import Star as Star
from sumformer.nn.patterns.step import Step as Step
from sumformer.nn.patterns.strided import Strided as Strided
from sumformer.nn.patterns.window import Window as Window

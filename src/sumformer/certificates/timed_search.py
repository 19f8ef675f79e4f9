"""Inputs in turns, then what ascent makes of the worst of them, then inputs that had to wait, all within a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sumformer.certificates.turns import Costs, Turns

SHARE = 0.6  # of the time, for the first of these


class TimedSearch(ABC):
    """A subclass knows the inputs, and keeps the worst by kind and number of tokens."""

    def __init__(self, effort: Any) -> None:
        self.effort = effort
        self.by_kind: dict[str, float] = {}
        self.trials, self.complete = 0, True
        self.costs = Costs()
        self.turns = Turns([], self.costs)

    @abstractmethod
    def ascend(self, end: float) -> None:
        """Better inputs, from the worst so far."""

    @abstractmethod
    def settle(self) -> None:
        """Takes what the turns have found."""

    def search(self, turns: Turns, start: float, seconds: float, witness: int) -> None:
        """`witness`: looks that the witness will cost."""
        self.turns = turns
        turns.run(start + SHARE * seconds)
        self.settle()
        self.complete = turns.complete
        end = start + seconds - min(0.2 * seconds, witness * self.costs.most())
        self.ascend(end)
        turns.run(end)
        self.settle()

    def not_reached(self) -> tuple[str, ...]:
        """Kinds of inputs, and numbers of tokens of a kind."""
        ascent = () if "ascent" in self.by_kind or not self.effort.rounds else ("ascent",)
        return self.turns.not_reached() + ascent

"""The time of an attack, shared: kinds of inputs take turns, and so do the batches of a kind.

The next turn is that of the kind that has had the least time, so that all kinds are looked at once before one is looked
at for long. A batch begins with one sequence; how many follow at a time depends on the seconds that one took. No turn
is begun that is not expected to end in time, but the very first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

QUICK = 0.1  # seconds in which so many sequences are looked at that more can be, before the next look at the clock


@dataclass
class Costs:
    """Measured seconds of a sequence, by its number of tokens; the least of several measurements.

    What was measured first counts only until there is another: a first call also loads and plans.
    """

    seconds: dict[int, float] = field(default_factory=dict)
    first: float | None = None

    def note(self, tokens: int, seconds: float) -> None:
        if self.first is None:
            self.first = seconds
        else:
            self.seconds[tokens] = min(seconds, self.seconds.get(tokens, seconds))

    def of(self, tokens: int) -> float:
        """As measured; else on the line through what was measured with fewer tokens, and no more than any with more
        tokens; 0 before any measurement.
        """
        if tokens in self.seconds or not self.seconds:
            return self.seconds.get(tokens, self.first or 0.0)
        above = min((s for m, s in self.seconds.items() if m > tokens), default=inf)
        fewer = sorted((m, s) for m, s in self.seconds.items() if m < tokens)
        if not fewer:
            return above
        (least, cheap), (most, dear) = fewer[0], fewer[-1]
        slope = max(0.0, dear - cheap) / max(1, most - least)
        return min(above, dear + slope * (tokens - most))

    def most(self) -> float:
        return max(self.seconds.values(), default=self.first or 0.0)

    def affordable(self, tokens: int, end: float) -> float:
        """Sequences there is time for until `end`."""
        left = end - time.perf_counter()
        return left / self.of(tokens) if self.of(tokens) > 0 else inf


@dataclass
class Turn:
    """A batch that is looked at a few rows at a time: `rows` sequences of `tokens` tokens, at most `most` at once."""

    kind: str
    distinct: int  # tokens, of which a sequence of more tokens may be made
    tokens: int
    rows: int
    most: int
    look: Callable[[slice], None]
    done: int = 0
    seconds: float = 0.0
    step: int = 1

    def take(self, costs: Costs, end: float) -> None:
        affordable = costs.affordable(self.tokens, end)
        count = max(1, int(min(self.step, self.rows - self.done, affordable)))
        began = time.perf_counter()
        self.look(slice(self.done, self.done + count))
        took = time.perf_counter() - began
        self.done += count
        if costs.first is not None:  # no kind is to wait for having been the first
            self.seconds += took
        costs.note(self.tokens, took / count)
        self.step = min(4 * self.step, self.most) if took < QUICK else self.step


@dataclass
class Turns:
    """Batches that share the time, in the order in which those that had equally much are chosen."""

    batches: list[Turn]
    costs: Costs

    def run(self, end: float) -> None:
        """Look at all there is time for."""
        while (turn := self._next(end)) is not None:
            turn.take(self.costs, end)

    def _next(self, end: float) -> Turn | None:
        spent: dict[str, tuple[bool, float]] = {}
        for turn in self.batches:
            looked, seconds = spent.get(turn.kind, (False, 0.0))
            spent[turn.kind] = looked or turn.done > 0, seconds + turn.seconds
        first = self.costs.first is None
        left = [t for t in self.batches if t.done < t.rows]
        left = left if first else [t for t in left if self.costs.affordable(t.tokens, end) >= 1]
        return min(left, key=lambda turn: (spent[turn.kind], turn.done > 0, turn.seconds), default=None)

    @property
    def complete(self) -> bool:
        return all(turn.done == turn.rows for turn in self.batches)

    def not_reached(self) -> tuple[str, ...]:
        """Kinds of which none was looked at, and of the others the numbers of distinct tokens."""
        some = {turn.kind for turn in self.batches if turn.done}
        seen = {(turn.kind, turn.distinct) for turn in self.batches if turn.done}
        missing: dict[str, set[int]] = {}
        for turn in self.batches:
            if (turn.kind, turn.distinct) not in seen:
                missing.setdefault(turn.kind, set()).add(turn.distinct)
        return tuple(kind if kind not in some else f"{kind} of {_listed(sizes)}" for kind, sizes in missing.items())


def _listed(sizes: Iterable[int]) -> str:
    *others, last = sorted(sizes)
    word = "tokens" if others or last > 1 else "token"
    return f"{', '.join(map(str, others))} and {last} {word}" if others else f"{last} {word}"

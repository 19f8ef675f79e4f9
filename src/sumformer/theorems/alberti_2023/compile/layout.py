"""Coordinates of the stream, [1 | u | values …]: a coordinate serves one value after another, cleared in between."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from sumformer.theorems.alberti_2023.compile.budget import Budget
from sumformer.theorems.alberti_2023.compile.realise import Realised, place
from sumformer.theorems.alberti_2023.compile.schedule import Schedule

ONE = 0


@dataclass
class Layout:
    """Where each place (a value's, or a workspace) stands, and which values must be cleared for the next."""

    width: int
    coordinate: dict[str, int] = field(default_factory=dict)
    cleared: set[int] = field(default_factory=set)
    before: dict[str, str] = field(default_factory=dict)
    """The place that had this coordinate before: what its clearing left is part of the error."""


def lay_out(budget: Budget, realised: Sequence[Realised], s: Schedule, d: int) -> Layout:
    """Greedy: at each block, the lowest coordinate that is free."""
    layout = Layout(1 + d)
    spans: list[tuple[int, int, str]] = []
    for v in budget.program.values:
        if not budget.sensitivity[v.index] or v.index in s.into:
            continue
        if v.op == "input":
            layout.coordinate[place(v.index)] = 1 + v.coordinate
        else:
            spans.append((s.first_write[v.index], s.last_read.get(v.index, s.blocks), place(v.index)))
    for i, r in enumerate(realised):
        spans += [(s.start[i], s.start[i] + r.gadget.depth - 1, w) for w in r.gadget.workspace]
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # (last block, coordinate)
    owner: dict[int, str] = {}
    for first, last, name in sorted(spans):
        while busy and busy[0][0] < first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            c = heapq.heappop(free)
            layout.before[name] = owner[c]
            if owner[c].isdigit():
                layout.cleared.add(int(owner[c]))
        else:
            c = layout.width
            layout.width += 1
        owner[c] = name
        layout.coordinate[name] = c
        heapq.heappush(busy, (last, c))
    means = {v.index for v in budget.program.values if v.op == "mean"}
    layout.cleared -= means  # X + Att(X) goes into FC only: the stream itself never holds a mean
    return layout

"""When each gadget runs and where each value stands: blocks in the order of need, coordinates reused once cleared.

A function or product used once, in a sum, is written straight into that sum's coordinate. The other terms of a sum are
added by one hidden unit. Means are read in the attention's block only; what reads them is gathered there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sumformer.theorems.alberti_2023.compile.budget import Budget
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.program import Program, Value
from sumformer.theorems.alberti_2023.compile.realise import Realised


@dataclass
class Schedule:
    """`start[i]`: the block of gadget i's first stage; `ready[v]`: the first block before which value v is complete."""

    start: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    copy_block: dict[int, int] = field(default_factory=dict)
    copied: dict[int, Functional] = field(default_factory=dict)
    into: dict[int, tuple[int, float]] = field(default_factory=dict)
    first_write: dict[int, int] = field(default_factory=dict)
    last_read: dict[int, int] = field(default_factory=dict)
    attention: int = 0
    blocks: int = 1


def schedule(budget: Budget, realised: Sequence[Realised]) -> Schedule:
    """As early as possible, the attention as soon as all it needs is there."""
    program = budget.program
    used = [v for v in program.values if budget.sensitivity[v.index]]
    s = Schedule()
    s.into = _direct(program, used, budget.outputs)
    gadget_of = {v: i for i, r in enumerate(realised) for v in r.values}
    for v in used:
        if v.phase == "x":
            _place(s, v, realised, gadget_of)
    s.attention = _attention_block(s, used)
    for v in used:
        if v.op == "mean":
            s.ready[v.index] = s.attention
        elif v.phase == "psi":
            _place(s, v, realised, gadget_of)
    s.blocks = max([s.attention + 1, *s.ready.values()])
    _lifetimes(s, used, gadget_of, budget.outputs)
    return s


def _direct(program: Program, used: Sequence[Value], outputs: Sequence[Functional]) -> dict[int, tuple[int, float]]:
    """value → (sum, weight) for functions and products that only one sum needs."""
    readers: dict[int, list[tuple[int, float]]] = {}
    for v in used:
        for f in v.of:
            for u, w in f.terms:
                readers.setdefault(u, []).append((v.index if v.op == "sum" else -1, w))
    for f in outputs:
        for u, w in f.terms:
            readers.setdefault(u, []).append((-1, w))
    return {
        u: found[0]
        for u, found in readers.items()
        if len(found) == 1 and found[0][0] >= 0 and program.values[u].op in ("function", "product")
    }


def _place(s: Schedule, v: Value, realised: Sequence[Realised], gadget_of: dict[int, int]) -> None:
    if v.op == "input":
        s.ready[v.index] = 0
    elif v.op in ("function", "product"):
        i = gadget_of[v.index]
        at = max((s.ready[u] for f in v.of for u, _ in f.terms), default=0)
        s.start[i] = max(s.start.get(i, 0), at)
        s.ready[v.index] = s.start[i] + realised[i].gadget.depth
    else:
        (f,) = v.of
        rest = Functional(tuple((u, w) for u, w in f.terms if s.into.get(u, (-1, 0))[0] != v.index), f.offset)
        direct = [s.ready[u] for u, _ in f.terms if s.into.get(u, (-1, 0))[0] == v.index]
        s.copied[v.index] = rest
        ready = max(direct, default=0)
        if rest.terms or not direct or rest.offset:
            s.copy_block[v.index] = max((s.ready[u] for u, _ in rest.terms), default=max(0, ready - 1))
            ready = max(ready, s.copy_block[v.index] + 1)
        s.ready[v.index] = ready


def _attention_block(s: Schedule, used: Sequence[Value]) -> int:
    """After every value that is averaged, and every own value that is read together with a mean."""
    means = {v.index for v in used if v.op == "mean"}
    needed = [s.ready[f.terms[0][0]] for v in used if v.op == "mean" for f in v.of]
    for v in used:
        if v.op != "mean" and any(u in means for f in v.of for u, _ in f.terms):
            needed += [s.ready[u] for f in v.of for u, _ in f.terms if u not in means and u in s.ready]
    return max(needed, default=0)


def _lifetimes(s: Schedule, used: Sequence[Value], gadget_of: dict[int, int], outputs: Sequence[Functional]) -> None:
    """The first write and the last read of every coordinate's owner."""
    for v in used:
        if v.op in ("function", "product"):
            at = s.start[gadget_of[v.index]]
            owner = s.into.get(v.index, (v.index, 1.0))[0]
            s.first_write[owner] = min(s.first_write.get(owner, at), at)
            for f in v.of:
                _read(s, f, at)
        elif v.op == "sum":
            if v.index in s.copy_block:
                at = s.copy_block[v.index]
                s.first_write[v.index] = min(s.first_write.get(v.index, at), at)
                _read(s, s.copied[v.index], at)
        elif v.op == "mean":
            s.first_write[v.index] = s.attention
            _read(s, v.of[0], s.attention)
    for f in outputs:
        _read(s, f, s.blocks)


def _read(s: Schedule, f: Functional, block: int) -> None:
    for u, _ in f.terms:
        s.last_read[u] = max(s.last_read.get(u, -1), block)

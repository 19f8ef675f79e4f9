"""|program − N| for every output: the blocks in order, each gadget of the ledger by its rule, no weight left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.compiled.element import Element
from sumformer.certificates.checker.compiled.files import Compiled
from sumformer.certificates.checker.compiled.head import Head
from sumformer.certificates.checker.compiled.ledger import Entry, Gadget
from sumformer.certificates.checker.compiled.root_rule import root
from sumformer.certificates.checker.compiled.rules import Added, Rules
from sumformer.certificates.checker.compiled.saw import Branch
from sumformer.certificates.checker.compiled.saw_rules import SQUARE, SawRules
from sumformer.certificates.checker.compiled.stream import TINY, UP, Stream, finite
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.verification import Unproved

_SIMPLE = ("identity", "clear", "function", "root")
_MAKES = {"identity": "sum", "function": "function", "root": "function", "square": "function", "product": "product"}


@dataclass
class Task:
    """One gadget on its way through the blocks."""

    gadget: Gadget
    branches: list[Branch] = field(default_factory=list)


def walk(net: Compiled, program: Mapping[str, Element], head: Head) -> list[Floats]:
    """The errors (of the gadgets alone, of everything) of every output."""
    stream = Stream(net, program, head)
    plan = _plan(net, stream)
    for k, layer in enumerate(net.layers):
        stream.settle(k)
        slots = stream.with_attention() if k == net.attention_block else stream.slots
        rules = SawRules(stream, slots, layer, stream.rounding(layer, slots))
        for task, stage, entries in plan[k]:
            try:
                _run(rules, task, stage, entries)
            except Unproved as why:
                raise Unproved(
                    f"block {k}, {task.gadget.kind} of {', '.join(task.gadget.values)[:60]}: {why}"
                ) from None
        _nothing_left(rules, k)
        _apply(stream, rules, k)
    stream.settle(len(net.layers))
    return [finite(error) for error in stream.read_out()]


def _plan(net: Compiled, stream: Stream) -> list[list[tuple[Task, int, tuple[Entry, ...]]]]:
    """What each block does; every function and product is the work of one gadget."""
    plan: list[list[tuple[Task, int, tuple[Entry, ...]]]] = [[] for _ in net.layers]
    made: set[str] = set()
    for gadget in net.gadgets:
        if len(set(gadget.values)) < len(gadget.values):
            raise Unproved(f"{', '.join(gadget.values)[:60]}: a gadget names a value twice")
        if gadget.kind not in ("identity", "clear"):
            if made & set(gadget.values) or not gadget.values:
                raise Unproved(f"{', '.join(gadget.values)} is made by two gadgets")
            made |= set(gadget.values)
        ops = {stream.values[name].op for name in gadget.values}
        if ops != {_MAKES.get(gadget.kind)} and gadget.kind != "clear":
            raise Unproved(f"a gadget {gadget.kind} is of another kind of value")
        if gadget.kind != "function" and len(gadget.values) != 1:
            raise Unproved(f"a gadget {gadget.kind} is of more than one value, or of none")
        if gadget.kind in _SIMPLE and [len(stage) for stage in gadget.stages] != [1]:
            raise Unproved(f"a gadget {gadget.kind} has not one stage of one entry")
        if gadget.kind not in _SIMPLE and not gadget.stages:
            _silent(gadget, stream)
        task, before = Task(gadget), -1
        for i, stage in enumerate(gadget.stages):
            blocks = {entry.block for entry in stage}
            if len(blocks) != 1 or not min(blocks) > before:
                raise Unproved(f"the stages of {', '.join(gadget.values)[:60]} are not one block after another")
            before = min(blocks)
            plan[before].append((task, i, stage))
    return plan


def _silent(gadget: Gadget, stream: Stream) -> None:
    """No unit at all: the value is left out, and all of it is error."""
    (name,) = gadget.values
    if gadget.kind == "square" and stream.values[name].expression != SQUARE:
        raise Unproved(f"{name} is left out as a square, which it is not")
    sizes = [max(map(abs, stream.span(f))) for f in stream.values[name].of]
    stream.silent[name] = np.full(2, sizes[0] * sizes[-1] * UP + TINY)


def _run(rules: SawRules, task: Task, stage: int, entries: tuple[Entry, ...]) -> None:
    gadget = task.gadget
    if gadget.kind == "identity":
        rules.identity(gadget, entries[0])
    elif gadget.kind == "clear":
        rules.clear(gadget, entries[0])
    elif gadget.kind == "function":
        rules.function(gadget, entries[0])
    elif gadget.kind == "root":
        root(rules, gadget, entries[0])
    elif len(gadget.ranges) != (2 if gadget.kind == "product" else 1):
        raise Unproved("it has not one range for each argument")
    elif gadget.kind == "product" and len(gadget.stages) == 1 and len(entries) == 1:
        rules.linear_product(gadget, entries[0])
    else:
        if stage == 0:
            task.branches = rules.start(gadget, entries)
        if len(entries) != len(task.branches):
            raise Unproved("a stage has not one entry for each branch")
        rules.stage(gadget, entries, task.branches, stage == len(gadget.stages) - 1)


def _nothing_left(rules: Rules, k: int) -> None:
    """Every unit belongs to one entry; one that does not has no weights."""
    layer = rules.layer
    if bool((rules.covered > 1).any()):
        raise Unproved(f"block {k}: a hidden unit belongs to two entries of the ledger")
    outside = np.flatnonzero(rules.covered == 0)
    weighted = np.isin(outside, layer.rows_1) | np.isin(outside, layer.columns_2) | (layer.b_1[outside] != 0)
    if bool(weighted.any()):
        raise Unproved(f"block {k}: hidden units outside the ledger have weights")


def _apply(stream: Stream, rules: Rules, k: int) -> None:
    """X + FC: what was added, rounding, and what b_2 holds beside the ledger's constants."""
    layer = rules.layer
    for c in sorted(rules.added.keys() | set(np.flatnonzero(layer.b_2).tolist())):
        added, slot = rules.added.get(c, Added()), stream.slots[c]
        if c == 0:
            raise Unproved(f"block {k}: it writes to the coordinate of 1")
        if (added.cleared and added.written) or (slot.owner is not None and not added.cleared):
            raise Unproved(f"block {k}: coordinate {c} is written while it is overwritten, or a saw works there")
        bias = Fraction(float(layer.b_2[c]))
        beside = float(abs(bias - added.constant)) * UP + float(rules.rounding[c])
        if added.cleared:
            slot.content, slot.error, slot.size, slot.value = {}, np.zeros(2), added.size, None
            slot.owner = added.owner
        else:
            for name, weight in added.content.items():
                if name in slot.content:
                    raise Unproved(f"block {k}: {name or 'an offset'} is in coordinate {c} already")
                slot.content[name] = weight
            slot.content = {name: w for name, w in slot.content.items() if w}
            slot.size += added.size + float(abs(bias)) * UP
            slot.value = None if added.content or added.begun or added.constant else slot.value
        slot.pending = (slot.pending | added.begun) - added.ended
        slot.error = finite(slot.error + added.error + np.array([0.0, beside]))
        slot.size = (slot.size + float(slot.error[1])) * UP

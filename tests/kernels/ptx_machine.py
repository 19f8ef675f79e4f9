"""The PTX that power sums are written in, run by NumPy: all threads of a program step by step, float32 as on a GPU.

Reading outside the tensors given, a register never written, or threads that part ways at a branch is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy

THREADS = 64
EVERYONE = numpy.ones(THREADS, dtype=bool)
KINDS = {"u8": "uint8", "u32": "uint32", "b32": "uint32", "u64": "uint64", "f32": "float32", "f64": "float64"}


def fma(a: Any, b: Any, c: Any) -> Any:
    return (a.astype("float64") * b + c).astype("float32")


RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mul.lo": lambda a, b: a * b,
    "mad.lo": lambda a, b, c: a * b + c,
    "fma": fma,
    "neg": lambda a: -a,
    "mov": lambda a: a,
    "min": numpy.minimum,
    "div": lambda a, b: a // b,
    "rem": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}
COMPARE = {"eq": numpy.equal, "ne": numpy.not_equal, "lt": numpy.less, "ge": numpy.greater_equal}


def parse(text: str) -> tuple[list[tuple[str, str, list[str]]], dict[str, int]]:
    """(predicate, operation, operands) in order, and where the labels stand."""
    steps, labels = [], {}
    for piece in re.split(r";\s*|(?<=[A-Z]:)\s+", text.strip()[1:-1].strip()):
        line = piece.strip()
        if line.endswith(":"):
            labels[line[:-1]] = len(steps)
        elif line and not line.startswith("."):
            match = re.fullmatch(r"(?:@(\w+) )?(\S+) ?(.*)", line)
            assert match, line
            steps.append((match[1] or "", match[2], re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^\s,]+", match[3])))
    return steps, labels


class Program:
    """One program of the grid: registers by name, shared memory, and the tensors by address."""

    def __init__(self, arguments: Sequence[Any], tensors: dict[int, numpy.ndarray], cta: tuple[int, int]) -> None:
        self.arguments, self.tensors = arguments, tensors
        self.special = {"%tid.x": numpy.arange(THREADS), "%ctaid.x": cta[0], "%ctaid.y": cta[1], "store": 0}
        self.names: dict[str, numpy.ndarray] = {}
        self.shared = numpy.full(3 * 2**12, numpy.nan, dtype="float32")

    def value(self, name: str, kind: str) -> numpy.ndarray:
        wanted = KINDS[kind]
        if name in self.names:
            found = self.names[name]
            assert found.dtype.kind == numpy.dtype(wanted).kind, name
            return found if found.dtype == wanted else found.astype(wanted)
        if name.startswith("$"):
            number = self.arguments[int(name[1:]) - 1]
        elif name.startswith(("0f", "0d")):
            raw = numpy.array(int(name[2:], 16), dtype="uint32" if name[1] == "f" else "uint64")
            number = raw.view("float32" if name[1] == "f" else "float64")
        else:
            number = self.special[name] if name in self.special else int(name)
        return numpy.broadcast_to(numpy.asarray(number).astype(wanted), (THREADS,))

    def places(self, operand: str, space: str, kind: str, where: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The array that holds the addresses, and the index of each thread that asks."""
        name, offset = re.fullmatch(r"\[(\w+)\+?(\d*)\]", operand).groups()
        if space == "shared":
            return self.shared, (self.value(name, "u32")[where].astype("int64") + int(offset or 0)) // 4
        at = self.value(name, "u64")[where].astype("int64") + int(offset or 0)
        width = numpy.dtype(KINDS[kind]).itemsize
        for base, tensor in self.tensors.items():
            if len(at) and base <= at.min() and at.max() + width <= base + tensor.nbytes:
                assert not ((at - base) % width).any()
                return tensor.view(KINDS[kind]), (at - base) // width
        assert not len(at), "outside of every tensor"
        return next(iter(self.tensors.values())), at

    def write(self, name: str, new: Any, where: numpy.ndarray) -> None:
        self.names[name] = new if where is EVERYONE else numpy.where(where, new, self.names.get(name, new))

    def run(self, text: str) -> None:
        steps, labels = parse(text)
        at = 0
        while at < len(steps):
            predicate, operation, operands = steps[at]
            where = self.names[predicate] if predicate else EVERYONE
            at += 1
            if operation == "bra":
                assert where.all() or not where.any(), "threads part ways"
                at = labels[operands[0]] if where.all() else at
            elif operation != "bar.sync":
                self.step(operation.split("."), operands, where)

    def step(self, operation: list[str], operands: list[str], where: numpy.ndarray) -> None:
        name, kind = operation[0], operation[-1]
        if name in ("ld", "st"):
            target, source = operands if name == "ld" else operands[::-1]
            array, index = self.places(source, operation[1], kind, where)
            for i, register in enumerate(re.findall(r"\w+", target)):
                if name == "st":
                    array[index + i] = self.value(register, kind)[where]
                else:
                    new = numpy.zeros(THREADS, dtype="uint32" if kind == "u8" else KINDS[kind])
                    new[where] = array[index + i]
                    self.write(register, new, where)
            return
        sources = operands[1:]
        if name == "setp":
            new = COMPARE[operation[1]](*(self.value(s, kind) for s in sources))
        elif name == "selp":
            new = numpy.where(self.names[sources[2]], self.value(sources[0], kind), self.value(sources[1], kind))
        elif name == "cvt":
            new = self.value(sources[0], kind).astype(KINDS[operation[1]])
        elif operation[1] == "wide":
            new = self.value(sources[0], kind).astype("uint64") * self.value(sources[1], kind)
        else:
            rule = ".".join(operation[:2]) if operation[1] == "lo" else name
            new = RULES[rule](*(self.value(s, kind) for s in sources))
        self.write(operands[0], new, where)

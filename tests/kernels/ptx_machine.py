"""The PTX that power sums are written in, run by NumPy: warp after warp, step by step, rounded as on a GPU.

Reading outside the tensors given or the shared memory declared, more of that than a program may have, a vector not
aligned to its length, a register never written, lanes that part ways at a branch or a barrier, and two lanes or warps
at one word with no barrier in between are errors. Shared memory is NaN at first, and where a copy is under way until it
is waited for; so is what a lane has not written of a register.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
import torch

THREADS = 32
EVERYONE = numpy.ones(THREADS, dtype=bool)
MOST_SHARED = 48 * 1024
KINDS = {
    "u8": "uint8",
    "u32": "uint32",
    "b32": "uint32",
    "u64": "uint64",
    "f32": "float32",
    "f64": "float64",
}


def fma(a: Any, b: Any, c: Any) -> Any:
    """Of float32 rounded once: the product is exact in float64, the sum is rounded to odd there, and then again."""
    if a.dtype != "float32":
        return (a.astype("longdouble") * b + c).astype(a.dtype)
    p, q = a.astype("float64") * b, numpy.asarray(c, dtype="float64")
    total = numpy.array(p + q)
    part = total - p
    lost = (p - (total - part)) + (q - part)
    even = total.view("int64") & 1 == 0
    toward = numpy.nextafter(total, numpy.where(lost > 0, numpy.inf, -numpy.inf))
    return numpy.where(even & (lost != 0) & numpy.isfinite(lost), toward, total).astype("float32")


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
    "shr": lambda a, b: a >> b,
}
COMPARE = {
    "eq": numpy.equal,
    "ne": numpy.not_equal,
    "lt": numpy.less,
    "ge": numpy.greater_equal,
}


def parse(text: str) -> tuple[list[tuple[str, str, list[str]]], dict[str, int]]:
    """(predicate, operation, operands) in order, and where the labels stand."""
    steps: list[tuple[str, str, list[str]]] = []
    labels: dict[str, int] = {}
    for piece in re.split(r";\s*|(?<=[A-Z]:)\s+", text.strip()[1:-1].strip()):
        line = piece.strip()
        if line.endswith(":"):
            labels[line[:-1]] = len(steps)
        elif line and not line.startswith("."):
            match = re.fullmatch(r"(?:@(!?\w+) )?(\S+) ?(.*)", line)
            assert match, line
            steps.append((match[1] or "", match[2], re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^\s,]+", match[3])))
    return steps, labels


def launch(programs: int, text: str, arguments: Sequence[Any], warps: int = 1) -> None:
    """The whole grid, on tensors of a CPU; the third is what is written, and NaN at first."""
    arguments[2].fill_(torch.nan)
    tensors = {a.data_ptr(): a.view(torch.uint8).numpy().reshape(-1) for a in arguments if isinstance(a, torch.Tensor)}
    numbers = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
    declared = re.search(r"\.shared .*?store\[(\d+)\]", text)
    size = int(declared[1]) if declared else 0
    assert size <= MOST_SHARED, "more shared memory than a program may declare"
    with numpy.errstate(all="ignore"):
        for cta in range(programs):
            shared = Shared(size // 4, warps)
            running = [Warp(numbers, tensors, (cta, programs), shared, warp).run(text) for warp in range(warps)]
            while (met := {next(warp, "end") for warp in running}) != {"end"}:
                assert met == {"barrier"}, "not all warps come to the barrier"
                shared.barrier()


class Shared:
    """Shared memory, with the lanes that used it since a barrier of their warp, and the warps since one of all."""

    def __init__(self, words: int, warps: int) -> None:
        self.numbers = numpy.full(words, numpy.nan, dtype="float32")
        self.lanes, self.warps = Users(words, warps * THREADS), Users(words, warps)

    def barrier(self) -> None:
        for users in (self.lanes, self.warps):
            users.barrier(0, users.nobody)

    def use(self, name: str, words: numpy.ndarray, threads: numpy.ndarray) -> None:
        self.lanes.no_race(name, words, threads)
        self.warps.no_race(name, words, threads // THREADS)


class Users:
    """Who wrote each word, and the first and last of those who read it."""

    def __init__(self, words: int, nobody: int) -> None:
        self.nobody = nobody
        self.writer, self.last = numpy.full(words, -1), numpy.full(words, -1)
        self.first = numpy.full(words, nobody)

    def barrier(self, begin: int, end: int) -> None:
        """Of these users: what others used too stays theirs."""
        written = (self.writer == -1) | ((begin <= self.writer) & (self.writer < end))
        alone = written & (self.last < end) & (self.first >= begin)
        self.writer[alone] = self.last[alone] = -1
        self.first[alone] = self.nobody

    def no_race(self, name: str, words: numpy.ndarray, users: numpy.ndarray) -> None:
        """Between two barriers a word that one writes is no other's."""
        assert ((self.writer[words] == users) | (self.writer[words] == -1)).all(), "two lanes at one word"
        if name == "ld":
            numpy.minimum.at(self.first, words, users)
            numpy.maximum.at(self.last, words, users)
            return
        unread = self.last[words] == -1
        alone = (self.first[words] == users) & (self.last[words] == users)
        assert (unread | alone).all(), "two lanes at one word"
        self.writer[words] = users
        assert (self.writer[words] == users).all(), "two lanes at one word"


class Warp:
    """Registers by name, copies under way, shared memory, and the tensors by address."""

    def __init__(
        self,
        arguments: Sequence[Any],
        tensors: dict[int, numpy.ndarray],
        cta: tuple[int, int],
        shared: Shared,
        number: int = 0,
    ) -> None:
        self.arguments, self.tensors, self.shared = arguments, tensors, shared
        self.threads = numpy.arange(THREADS) + THREADS * number
        self.special = {"%tid.x": self.threads, "%ctaid.x": cta[0], "%nctaid.x": cta[1], "store": 0}
        self.names: dict[str, numpy.ndarray] = {}
        self.copies: list[list[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]] = [[]]

    def use(self, name: str, kind: str, index: numpy.ndarray, where: numpy.ndarray) -> None:
        for word in range(numpy.dtype(KINDS[kind]).itemsize // 4):
            self.shared.use(name, index * numpy.dtype(KINDS[kind]).itemsize // 4 + word, self.threads[where])

    def copy(self, operands: list[str], where: numpy.ndarray) -> None:
        """The numbers are taken at once and come as late as they may."""
        target, source, size = operands[0], operands[1], int(operands[2])
        array, index = self.places(source, "global", "f32", size // 4, where)
        _, place = self.places(target, "shared", "f32", size // 4, where)
        for i in range(size // 4):
            self.use("st", "f32", place + i, where)
            self.shared.numbers[place + i] = numpy.nan
            self.copies[-1].append((place + i, array[index + i].copy(), where))

    def wait(self, but: int) -> None:
        done, self.copies = self.copies[: max(0, len(self.copies) - 1 - but)], self.copies[-1 - but :]
        for place, numbers, where in (copy for group in done for copy in group):
            self.use("st", "f32", place, where)  # nobody else sees it before a barrier behind this
            self.shared.numbers[place] = numbers

    def value(self, name: str, kind: str) -> numpy.ndarray:
        wanted = KINDS[kind]
        if name in self.names:
            found = self.names[name]
            assert (found.dtype.kind in "iu") == (numpy.dtype(wanted).kind in "iu"), name
            return found if found.dtype == wanted else found.astype(wanted)
        if name.startswith("$"):
            number = self.arguments[int(name[1:]) - 1]
        elif name.startswith(("0f", "0d")):
            raw = numpy.array(int(name[2:], 16), dtype="uint32" if name[1] == "f" else "uint64")
            number = raw.view("float32" if name[1] == "f" else "float64")
        else:
            number = self.special[name] if name in self.special else int(name, 0)
        return numpy.broadcast_to(numpy.asarray(number).astype(wanted), (THREADS,))

    def places(
        self, operand: str, space: str, kind: str, count: int, where: numpy.ndarray
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The array that holds the addresses, and the index of each thread that asks for so many numbers in a row."""
        match = re.fullmatch(r"\[(\w+)\+?(\d*)\]", operand)
        assert match, operand
        at = self.value(match[1], "u32" if space == "shared" else "u64")[where].astype("int64") + int(match[2] or 0)
        width = numpy.dtype(KINDS[kind]).itemsize
        assert not (at % (count * width)).any(), "not aligned"
        for base, tensor in [(0, self.shared.numbers)] if space == "shared" else self.tensors.items():
            if len(at) and base <= at.min() and at.max() + count * width <= base + tensor.nbytes:
                return tensor.view(KINDS[kind]), (at - base) // width
        assert not len(at), "outside of every tensor"
        return next(iter(self.tensors.values())), at

    def write(self, name: str, new: Any, where: numpy.ndarray) -> None:
        if where is not EVERYONE:
            nothing = numpy.nan if new.dtype.kind == "f" else numpy.iinfo(new.dtype).max
            new = numpy.where(where, new, self.names.get(name, nothing))
        self.names[name] = new

    def run(self, text: str) -> Iterator[str]:
        """Until the next barrier of all warps."""
        steps, labels = parse(text)
        at = 0
        while at < len(steps):
            predicate, operation, operands = steps[at]
            where = self.names[predicate.lstrip("!")] ^ (predicate[0] == "!") if predicate else EVERYONE
            at += 1
            if operation.startswith(("bar", "cp.async.commit", "cp.async.wait")):
                assert not predicate, "lanes part ways"
            if operation == "bra":
                assert where.all() or not where.any(), "lanes part ways"
                at = labels[operands[0]] if where.all() else at
            elif operation == "bar.warp.sync":
                assert operands == ["0xffffffff"]
                self.shared.lanes.barrier(self.threads[0], self.threads[-1] + 1)
            elif operation == "bar.sync":
                assert operands == ["0"]
                yield "barrier"
            elif operation == "cp.async.commit_group":
                self.copies.append([])
            elif operation == "cp.async.wait_group":
                self.wait(int(operands[0]))
            else:
                self.step(operation.split("."), operands, where)

    def step(self, operation: list[str], operands: list[str], where: numpy.ndarray) -> None:
        name, kind = operation[0], operation[-1]
        if name == "cp":
            self.copy(operands, where)
            return
        if name in ("ld", "st"):
            target, source = operands if name == "ld" else operands[::-1]
            registers = re.findall(r"\w+", target)
            array, index = self.places(source, operation[1], kind, len(registers), where)
            for i, register in enumerate(registers):
                if operation[1] == "shared":
                    self.use(name, kind, index + i, where)
                if name == "st":
                    array[index + i] = self.value(register, kind)[where]
                else:
                    new = numpy.zeros(THREADS, dtype="uint32" if kind == "u8" else KINDS[kind])
                    new[where] = array[index + i]
                    self.write(register, new, where)
            return
        sources = operands[1:]
        if name == "mma":
            self.multiply(operation, *(re.findall(r"\w+", operand) for operand in operands))
            return
        if sources[0].startswith("{"):
            low, high = (self.value(s, "u32").astype("uint64") for s in re.findall(r"[$\w]+", sources[0]))
            new = (low | high << numpy.uint64(32)).view("float64")
        elif name == "setp":
            new = COMPARE[operation[1]](*(self.value(s, kind) for s in sources))
        elif name == "selp":
            new = numpy.where(self.names[sources[2]], self.value(sources[0], kind), self.value(sources[1], kind))
        elif name == "cvt":
            new = self.value(sources[0], kind).astype(KINDS[operation[-2]])
        elif operation[1] == "wide":
            new = self.value(sources[0], kind).astype("uint64") * self.value(sources[1], kind)
        else:
            rule = ".".join(operation[:2]) if operation[1] == "lo" else name
            new = RULES[rule](*(self.value(s, kind) for s in sources))
        self.write(operands[0], new, where)

    def multiply(
        self, operation: list[str], out: list[str], rows: list[str], columns: list[str], add: list[str]
    ) -> None:
        """m16n8k8 in float64: lane 4 r + c holds columns c, c + 4 of rows r, r + 8, the transpose, and four sums."""
        assert operation[3] == "m16n8k8"
        assert out == add
        a = [self.value(v, "f64").reshape(8, 4) for v in rows]
        b = numpy.hstack([self.value(v, "f64").reshape(8, 4) for v in columns])
        product = numpy.block([[a[0], a[2]], [a[1], a[3]]]) @ b.T
        for i, name in enumerate(out):
            part = product[8 * (i // 2) :][:8, i % 2 :: 2].reshape(-1)
            self.write(name, self.value(name, "f64") + part, EVERYONE)

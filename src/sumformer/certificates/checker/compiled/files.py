"""config.json and model.safetensors of a `CompiledTransformer`: a value of the right type, or a `FileFormatError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.certificates.checker.compiled.ledger import Entry, Functional, Gadget, Layer, Value
from sumformer.certificates.checker.files import Tensors, read_described, read_weights
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.json_values import fraction, has_keys, integer, number, same
from sumformer.targets.parser import parse

OPS = ("input", "mean", "function", "product", "sum")
KINDS = ("identity", "clear", "function", "root", "square", "product")
MAX_BLOCKS = 4096
MAX_WIDTH = 2**20
MAX_UNITS = 2**24


@dataclass(frozen=True)
class Compiled:
    """Everything of the folder but the certificate."""

    d: int
    width: int
    outputs: int
    centre: tuple[Fraction, ...]
    radius: tuple[Fraction, ...]
    attention: Mapping[str, Any]
    attention_block: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    source_names: tuple[str, ...]
    mean_names: tuple[str, ...]
    values: tuple[Value, ...]
    gadgets: tuple[Gadget, ...]
    read_out: tuple[Functional, ...]
    tokens: int | None
    ideal: Mapping[str, Any]
    layers: tuple[Layer, ...]
    tensors: Tensors


def read_compiled(folder: Path) -> Compiled:
    tensors = read_weights(folder)
    return read_described(folder, "a compiled network", lambda data: _compiled(data, tensors))


def _compiled(data: Any, tensors: Tensors) -> Compiled:
    has_keys(data, {"type", "read_in", "blocks", "read_out", "ideal", "ledger", "arithmetic"})
    if data["type"] != "CompiledTransformer" or data["arithmetic"] != "float64":
        raise ValueError("expected a CompiledTransformer in float64")
    ledger = data["ledger"]
    has_keys(ledger, {"centre", "radius", "values", "gadgets", "attention", "outputs", "tokens"})
    _no_modules(ledger)
    d, width, outputs = _sizes(data["read_in"], data["read_out"])
    blocks = _blocks(data["blocks"])
    place = ledger["attention"]
    has_keys(place, {"block", "values", "means", "from", "to"})
    at = integer(place["block"], 0, len(blocks) - 1)
    for k, block in enumerate(blocks):
        check_block(block, k == at)
    if not isinstance(data["ideal"], dict):
        raise ValueError("expected an object that describes the ideal network")
    names: dict[str, None] = {}
    values = tuple(_value(v, names, d, width, len(blocks)) for v in ledger["values"])
    sources, targets = (tuple(integer(c, 1, width - 1) for c in place[key]) for key in ("from", "to"))
    means = tuple(place["means"]), tuple(place["values"])
    if not len(means[0]) == len(means[1]) == len(sources) == len(targets) == len(set(targets)):
        raise ValueError("attention: expected as many values as means and coordinates, all different")
    if not all(name in names for name in (*means[0], *means[1])):
        raise ValueError("attention: it names a value that does not exist")
    tokens = None if ledger["tokens"] is None else integer(ledger["tokens"], 1, 2**30)
    layers = tuple(read_layer(block["feed_forward"], tensors, k, width) for k, block in enumerate(blocks))
    gadgets = tuple(_gadget(g, names, width, layers) for g in ledger["gadgets"])
    return Compiled(
        d=d,
        width=width,
        outputs=outputs,
        centre=tuple(fraction(v) for v in ledger["centre"]),
        radius=tuple(fraction(v) for v in ledger["radius"]),
        attention=blocks[at]["attention"],
        attention_block=at,
        sources=sources,
        targets=targets,
        source_names=means[1],
        mean_names=means[0],
        values=values,
        gadgets=gadgets,
        read_out=tuple(_functional(f, names) for f in ledger["outputs"]),
        tokens=tokens,
        ideal=data["ideal"],
        layers=layers,
        tensors=tensors,
    )


def _sizes(read_in: Any, read_out: Any) -> tuple[int, int, int]:
    """Of a token, of the stream and of an output: the layers at both ends are linear, the first with a bias."""
    d, width = integer(read_in["in_features"], 1, 64), integer(read_in["out_features"], 1, MAX_WIDTH)
    outputs = integer(read_out["out_features"], 1, 4096)
    for layer, shape, bias in ((read_in, (d, width), True), (read_out, (width, outputs), False)):
        wanted = {"type": "torch.Linear", "in_features": shape[0], "out_features": shape[1], "bias": bias}
        if not same(layer, wanted):
            raise ValueError(f"expected {wanted}, got {layer}")
    return d, width, outputs


def _blocks(data: Any) -> list[Any]:
    if data.keys() != {"type", "modules"} or data["type"] != "torch.Sequential":
        raise ValueError("expected a sequence of blocks")
    blocks = data["modules"]
    if not isinstance(blocks, list) or not 1 <= len(blocks) <= MAX_BLOCKS:
        raise ValueError(f"expected 1 to {MAX_BLOCKS} blocks")
    return blocks


def _no_modules(part: Any) -> None:
    """A "type" is read as a module wherever it stands, and the ledger has none."""
    left = [part]
    while left:
        part = left.pop()
        if isinstance(part, dict) and "type" in part:
            raise ValueError("the ledger describes a module")
        left += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []


def check_block(block: Any, attends: bool) -> None:
    """X + FC(X + Att(X)) and nothing else; Att is 0 but in the block that `attends`."""
    has_keys(block, {"type", "attention", "feed_forward", "attention_norm", "feed_forward_norm", "dropout"})
    bare = block["attention_norm"] is None and block["feed_forward_norm"] is None and block["dropout"] == 0
    if block["type"] != "Block" or not bare:
        raise ValueError("a block is not X + FC(X + Att(X)) and nothing else")
    if not attends and block["attention"] != {"type": "Zero"}:
        raise ValueError("a block beside the attention's has an attention of its own")
    if not isinstance(block["attention"], dict):
        raise ValueError("expected an object that describes the attention")


def _value(data: Any, names: dict[str, None], d: int, width: int, blocks: int) -> Value:
    name, op = data["name"], data["op"]
    if not isinstance(name, str) or name in names or not name or "\0" in name or op not in OPS:
        raise ValueError(f"values: {name!r} is not a new name, or {op!r} no operation")
    of: tuple[Functional, ...] = ()
    if op == "mean":
        of = (Functional(((data["of"], 1.0),), 0.0),)
        if data["of"] not in names:
            raise ValueError(f"values: {name} averages what does not exist before it")
    elif op == "product":
        a, b = data["of"]
        of = (_functional(a, names), _functional(b, names))
    elif op != "input":
        of = (_functional(data["of"], names),)
    expression = parse(data["expression"], 1) if op == "function" else None
    if expression is not None and expression.width != 1:
        raise ValueError(f"values: the expression of {name} is not a number")
    low, high = (number(v) for v in data["range"])
    because = data.get("because", {})
    if not isinstance(because, dict):
        raise ValueError(f"values: expected an object in because of {name}")
    names[name] = None
    coordinate = integer(data["coordinate"], 0, d - 1) if op == "input" else -1
    at, ready = integer(data["at"], -1, width - 1), integer(data["from"], 0, blocks)
    return Value(name, op, of, expression, coordinate, at, ready, number(data["error"]), (low, high), because)


def _functional(data: Any, names: Mapping[str, None]) -> Functional:
    has_keys(data, {"of", "weights", "offset"})
    if len(data["of"]) != len(data["weights"]) or not all(name in names for name in data["of"]):
        raise ValueError("a functional has other weights than values, or values that do not exist before it")
    if len(set(data["of"])) != len(data["of"]):
        raise ValueError("a functional names a value twice")
    terms = tuple(zip(data["of"], map(number, data["weights"]), strict=True))
    return Functional(terms, number(data["offset"]))


def _gadget(data: Any, names: Mapping[str, None], width: int, layers: tuple[Layer, ...]) -> Gadget:
    if data["kind"] not in KINDS or not all(name in names for name in data["values"]):
        raise ValueError(f"gadgets: unknown kind {data['kind']!r} or value")
    ranges = tuple((number(low), number(high)) for low, high in data.get("ranges", []))
    stages = tuple(tuple(_entry(e, width, layers) for e in stage) for stage in data["stages"])
    return Gadget(data["kind"], tuple(data["values"]), ranges, stages)


def _entry(data: Any, width: int, layers: tuple[Layer, ...]) -> Entry:
    has_keys(data, {"block", "units", "writes", "constants"})
    block = integer(data["block"], 0, len(layers) - 1)
    first, end = (integer(v, 0, len(layers[block].b_1)) for v in data["units"])
    if first > end:
        raise ValueError("gadgets: units end before they begin")
    writes = tuple(integer(int(c), 1, width - 1) for c in data["writes"])
    constants = {integer(int(c), 1, width - 1): number(v) for c, v in data["constants"].items()}
    return Entry(block, first, end, writes, constants)


def read_layer(data: Any, tensors: Tensors, k: int, width: int) -> Layer:
    has_keys(data, {"type", "d_model", "d_hidden", "nonzero_1", "nonzero_2"})
    hidden = integer(data["d_hidden"], 1, MAX_UNITS)
    if data["type"] != "SparseFeedForward" or not same(data["d_model"], width):
        raise ValueError(f"block {k}: expected a SparseFeedForward of the stream's width")
    prefix = f"blocks.{k}.feed_forward."
    parts = [
        _matrix(tensors, prefix, i, data[f"nonzero_{i}"], shape)
        for i, shape in ((1, (hidden, width)), (2, (width, hidden)))
    ]
    b_1, b_2 = tensor(tensors, f"{prefix}b_1", (hidden,)), tensor(tensors, f"{prefix}b_2", (width,))
    return Layer(*parts[0], b_1, *parts[1], b_2)


def _matrix(tensors: Tensors, prefix: str, i: int, count: Any, shape: tuple[int, int]) -> tuple[Any, Any, Floats]:
    place = tensors[f"{prefix}place_{i}"]
    values = tensor(tensors, f"{prefix}value_{i}", (integer(count, 0, 2**28),))
    if place.dtype != np.int32 or place.shape != (2, len(values)):
        raise ValueError(f"{prefix}place_{i}: expected int32 of shape (2, {len(values)})")
    rows, columns = place.astype(np.int64)
    if len(values) and not (place.min() >= 0 and rows.max() < shape[0] and columns.max() < shape[1]):
        raise ValueError(f"{prefix}place_{i}: an entry lies outside the matrix")
    if not bool((np.diff(rows * shape[1] + columns) > 0).all()):
        raise ValueError(f"{prefix}place_{i}: expected entries in ascending order, each once")
    return rows, columns, values


def tensor(tensors: Tensors, name: str, shape: tuple[int, ...]) -> Floats:
    """A finite float64 tensor of this shape."""
    found = tensors[name]
    if found.dtype != np.float64 or found.shape != shape or not bool(np.isfinite(found).all()):
        raise ValueError(f"weights: {name} should be finite float64 of shape {shape}")
    return found

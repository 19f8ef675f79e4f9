"""config.json and model.safetensors of a `LookUpTransformer`: three staircases and a head, or a `FileFormatError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.certificates.checker.compiled.files import check_block, read_layer, tensor
from sumformer.certificates.checker.compiled.ledger import Layer
from sumformer.certificates.checker.files import Tensors, read_described
from sumformer.certificates.checker.json_values import has_keys, integer, items, same

LAYERS = {"step": "SparseStepFeedForward", "relu": "SparseFeedForward"}
_KEYS = {"type", "read_in", "blocks", "read_out", "n", "layout", "activation", "arithmetic"}


@dataclass(frozen=True)
class Network:
    """`stairs`: the feed-forward layers of x → cell, cell → code, cell and mean → out.

    The head's view of it: `attention` in block `attention_block` takes `sources` to `targets`, for `tokens` tokens.
    """

    d: int
    width: int
    tokens: int
    activation: str
    cell: int
    out: tuple[int, ...]
    stairs: tuple[tuple[Layer, ...], ...]
    attention: Mapping[str, Any]
    attention_block: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    tensors: Tensors

    @property
    def named(self) -> set[int]:
        return {*range(self.d), self.cell, *self.sources, *self.targets, *self.out}

    @property
    def tensor_names(self) -> set[str]:
        """All but the head's."""
        parts = ("place_1", "place_2", "value_1", "value_2", "b_1", "b_2")
        count = sum(map(len, self.stairs))
        names = {f"blocks.{k}.feed_forward.{part}" for k in range(count) for part in parts}
        return names | {"read_in.weight", "read_in.bias", "read_out.weight"}


def read_look_up(folder: Path, tensors: Tensors) -> Network:
    return read_described(folder, "a look-up network", lambda data: _network(data, tensors))


def _network(data: Any, tensors: Tensors) -> Network:
    has_keys(data, _KEYS)
    layout, activation = data["layout"], data["activation"]
    has_keys(layout, {"x", "cell", "code", "mean", "out"})
    if data["arithmetic"] != "float64" or activation not in LAYERS:
        raise ValueError("expected float64, and steps or ReLU")
    d, width = integer(data["read_in"]["in_features"]), integer(data["read_in"]["out_features"])
    out = tuple(integer(c) for c in items(layout["out"]))
    cell, code, mean = (integer(layout[key]) for key in ("cell", "code", "mean"))
    named = [*range(d), cell, code, mean, *out]
    if layout["x"] != list(range(d)) or not out or len(set(named)) != len(named):
        raise ValueError("expected the tokens first, and one coordinate for each name")
    if not (1 <= d <= 28 and all(0 <= c < width for c in named)):
        raise ValueError("a coordinate lies outside the stream")
    for layer, shape, bias in ((data["read_in"], (d, width), True), (data["read_out"], (width, len(out)), False)):
        wanted = {"type": "torch.Linear", "in_features": shape[0], "out_features": shape[1], "bias": bias}
        if not same(layer, wanted):
            raise ValueError(f"expected {wanted}, got {layer}")
    _copies(tensors, d, width, out)
    each = 1 if activation == "step" else 2
    blocks = items(data["blocks"]["modules"])
    if len(blocks) != 3 * each or data["blocks"] != {"type": "torch.Sequential", "modules": blocks}:
        raise ValueError(f"expected a sequence of {3 * each} blocks")
    layers = []
    for k, block in enumerate(blocks):
        check_block(block, k == 2 * each)
        forward = block["feed_forward"]
        if forward["type"] != LAYERS[activation]:
            raise ValueError(f"block {k}: expected a {LAYERS[activation]}, got {forward['type']!r}")
        layers.append(read_layer({**forward, "type": "SparseFeedForward"}, tensors, k, width))
    return Network(
        d=d,
        width=width,
        tokens=integer(data["n"]),
        activation=activation,
        cell=cell,
        out=out,
        stairs=tuple(tuple(layers[k * each : (k + 1) * each]) for k in range(3)),
        attention=blocks[2 * each]["attention"],
        attention_block=2 * each,
        sources=(code,),
        targets=(mean,),
        tensors=tensors,
    )


def _copies(tensors: Tensors, d: int, width: int, out: tuple[int, ...]) -> None:
    """Read-in and read-out are 1 where they copy, else 0."""
    wanted_in, wanted_out = np.zeros((width, d)), np.zeros((len(out), width))
    wanted_in[range(d), range(d)] = 1.0
    wanted_out[range(len(out)), list(out)] = 1.0
    bias = tensor(tensors, "read_in.bias", (width,))
    same_in = np.array_equal(tensor(tensors, "read_in.weight", (width, d)), wanted_in)
    same_out = np.array_equal(tensor(tensors, "read_out.weight", (len(out), width)), wanted_out)
    if bias.any() or not same_in or not same_out:
        raise ValueError("read-in and read-out should copy, and nothing else")

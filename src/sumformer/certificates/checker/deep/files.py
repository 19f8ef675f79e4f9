"""config.json and model.safetensors of a deep network, as plain arrays: a value of the right form, or an error."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.deep.connections import connections
from sumformer.certificates.checker.files import WEIGHTS_FILE, Tensors, read_described
from sumformer.certificates.checker.json_values import has_keys, integer, number, same
from sumformer.errors import FileFormatError

Floats = NDArray[np.float64]
MAX_LAYERS = 100_000
MAX_TOKENS = 64


@dataclass(frozen=True)
class Stack:
    """z ↦ z + W₂ R(W₁ z + b₁), layer after layer: W1 (L, r, D), b1 (L, r), W2 (L, D, r)."""

    W1: Floats
    b1: Floats
    W2: Floats


@dataclass(frozen=True)
class Attention:
    """Two heads of size 1: WQ, WK, WV (2, D), bQ (2,), WO (D, 2); `who` (n, n): may k attend to j, by `pattern`."""

    WQ: Floats
    bQ: Floats
    WK: Floats
    WV: Floats
    WO: Floats
    who: NDArray[np.bool_]
    pattern: Any = None


@dataclass(frozen=True)
class Network:
    """n tokens of width d on width D, and what the head reads: weight (outputs, D)."""

    n: int
    d: int
    embedding: tuple[Floats, Floats]
    places: Floats | None
    layers: tuple[Stack | Attention, ...]
    head: Floats

    @property
    def pattern(self) -> Any:
        """That of the first attention layer that has one; None where all attend to all."""
        patterns = (layer.pattern for layer in self.layers if isinstance(layer, Attention))
        return next((pattern for pattern in patterns if pattern is not None), None)

    @property
    def width(self) -> int:
        return len(self.embedding[1])


def read_deep_network(folder: Path, tensors: Tensors) -> Network:
    """Every tensor is used once and is float64; anything else is named."""
    left = dict(tensors)
    network = read_described(folder, "a deep network", lambda data: _network(data, left))
    if left:
        raise FileFormatError(folder / WEIGHTS_FILE, f"has tensors that no layer uses: {', '.join(sorted(left)[:3])}")
    return network


def _network(data: Any, left: Tensors) -> Network:
    has_keys(data, {"type", "n", "embedding", "layers", "head", "positions"})
    if data["type"] != "DeepTransformer":
        raise ValueError("expected a DeepTransformer")
    n = integer(data["n"], 1, MAX_TOKENS)
    entry, head = data["embedding"], data["head"]
    _expect(entry, {"d_in", "d_model"}, type="VectorEmbedding")
    _expect(head, {"d_model", "d_out"}, type="TokenHead")
    d, width = integer(entry["d_in"], 1, 28), integer(entry["d_model"], 1, 4096)
    embedding = _take(left, "embedding.map.weight", (width, d)), _take(left, "embedding.map.bias", (width,))
    outputs = integer(head["d_out"], 1, 4096)
    if not same(head["d_model"], width):
        raise ValueError("the head does not have the width of the tokens")
    places = None
    if data["positions"] is not None:
        _expect(data["positions"], {"std"}, type="LearnedPositions", n_max=n, d_model=width)
        if number(data["positions"]["std"]) < 0:
            raise ValueError("expected a standard deviation ≥ 0 of the positions as they were drawn")
        places = _take(left, "positions.table", (n, width))
    _expect(data["layers"], {"modules"}, type="torch.Sequential")
    modules = data["layers"]["modules"]
    if not isinstance(modules, list) or len(modules) > MAX_LAYERS:
        raise ValueError(f"expected a list of at most {MAX_LAYERS} layers")
    layers = tuple(_layer(module, f"layers.{i}", n, width, left) for i, module in enumerate(modules))
    weight, bias = _take(left, "head.map.weight", (outputs, width)), _take(left, "head.map.bias", (outputs,))
    if np.any(bias != 0):
        raise ValueError("the head has a bias")
    return Network(n, d, embedding, places, layers, weight)


def _layer(data: Any, name: str, n: int, width: int, left: Tensors) -> Stack | Attention:
    if data["type"] == "ReluStack":
        has_keys(data, {"type", "d_model", "d_hidden", "layers", "fused"})
        count, r = integer(data["layers"], 1, MAX_LAYERS), integer(data["d_hidden"], 1, 4)
        if not same(data["d_model"], width):
            raise ValueError(f"{name} has another width")
        shapes = {"W_1": (count, r, width), "b_1": (count, r), "W_2": (count, width, r)}
        stack = Stack(*(_take(left, f"{name}.{key}", shape) for key, shape in shapes.items()))
        if data["fused"] is not False and not (data["fused"] is True and _is_look_up(stack)):
            raise ValueError(f"{name} is evaluated by search, but is no look-up")
        return stack
    bare = {"attention_norm": None, "feed_forward_norm": None, "dropout": 0.0}
    _expect(data, {"attention"}, type="ResidualBlock", feed_forward={"type": "Zero"}, **bare)
    heads = data["attention"]
    softmax: dict[str, Any] = {
        "d_model": width,
        "nhead": 2,
        "d_head": 1,
        "normaliser": {"type": "Softmax"},
        "query_bias": True,
        "scale": False,
    }
    if heads["type"] == "SoftmaxAttention":
        _expect(heads, type="SoftmaxAttention", **softmax)
        who, pattern = np.ones((n, n), dtype=np.bool_), None
    else:
        _expect(heads, {"pattern", "layer"}, type="SparseAttention", composition="sequential", **softmax)
        pattern = heads["pattern"]
        who = connections(pattern, heads["layer"], n)
    shapes = {"W_Q.weight": (2, width), "W_Q.bias": (2,), "W_K.weight": (2, width), "W_V.weight": (2, width)}
    q, b, k, v = (_take(left, f"{name}.attention.{key}", shape) for key, shape in shapes.items())
    return Attention(q, b, k, v, _take(left, f"{name}.attention.W_O.weight", (width, 2)), who, pattern)


def _is_look_up(stack: Stack) -> bool:
    """Bumps of one form: 0 up to the first kink and from the last on, one below the other; a search finds the same."""
    if stack.b1.shape[1] != 4:
        return False
    kinks, weights = -stack.b1, stack.W2
    same = bool((stack.W1[0, 0] == stack.W1).all() and (np.diff(kinks, axis=1) > 0).all())
    bumps = bool((weights == weights[..., :1] * np.array([1.0, -1.0, -1.0, 1.0])).all())
    even = bool((kinks[:, 1] - kinks[:, 0] == kinks[:, 3] - kinks[:, 2]).all())
    return same and bumps and even and bool((kinks[1:, 3] <= kinks[:-1, 0]).all())


def _take(left: Tensors, name: str, shape: tuple[int, ...]) -> Floats:
    if name not in left:
        raise ValueError(f"the tensor {name} is missing")
    value = left.pop(name)
    if value.shape != shape or value.dtype != np.float64 or not bool(np.isfinite(value).all()):
        raise ValueError(f"{name} should be finite float64 of shape {shape}, is {value.dtype} {value.shape}")
    return value


def _expect(data: Any, free: Collection[str] = (), **wanted: Any) -> None:
    """An object of the `free` keys and the `wanted` values, and no more: another key is no module's argument."""
    has_keys(data, {*free, *wanted})
    for key, value in wanted.items():
        if not same(data[key], value):
            raise ValueError(f"expected {key} = {value!r}, got {data[key]!r}")

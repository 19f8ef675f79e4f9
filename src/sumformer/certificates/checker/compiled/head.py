"""The one attention: with W_Q = W_K = 0 all logits are 0 and every token gets the mean of the values.

softmax      11ᵀ/n: γ_{n+8}                     performer, normalised   D⁻¹ a(0)(a(0)ᵀV): γ_{n+2k+12}
linformer    F = 1/n, k equal rows: γ_{n+k+10}   unnormalised            a(0)·a(0) = 1, W_V carries 1/n: γ_{n+2k+12}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from sumformer.certificates.checker.compiled.files import tensor
from sumformer.certificates.checker.files import Tensors
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.json_values import is_integer, same
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Tokens

U = 2.0**-53
_SETTINGS = {
    "SoftmaxAttention": {"nhead", "d_head", "normaliser", "query_bias", "scale"},
    "LinformerAttention": {"n_max", "k", "nhead", "d_head", "normaliser", "scale"},
    "PerformerAttention": {"k", "nhead", "d_head", "seed"},
    "FavorAttention": {"k", "nhead", "d_head", "seed"},
}
ARCHITECTURES = {
    "SoftmaxAttention": "transformer",
    "LinformerAttention": "linformer",
    "PerformerAttention": "performer",
    "FavorAttention": "performer",
}


class Attending(Protocol):
    """A network whose block `attention_block` takes the means of `sources` to `targets`; `tokens` where it knows n."""

    @property
    def attention(self) -> Mapping[str, Any]: ...
    @property
    def attention_block(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def sources(self) -> tuple[int, ...]: ...
    @property
    def targets(self) -> tuple[int, ...]: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def tensors(self) -> Tensors: ...


@dataclass(frozen=True)
class Head:
    """|head − mean| ≤ relative · max |value|, the tensors that were read, and |E X| ≤ mixed · max |X|."""

    relative: float
    tensors: frozenset[str]
    mixed: float = 0.0
    count: int = 1  # tokens whose values are added before they are divided


@dataclass(frozen=True)
class _Mixing:
    """Of the tensors beside W_Q … W_O: their names, how far off a mean they are, and roundings in a row."""

    roundings: int
    tensors: frozenset[str] = frozenset()
    drift: float = 0.0
    mixed: float = 0.0


def read_head(net: Attending, tokens: Tokens) -> Head:
    """The attention's settings and tensors, every weight beside the ledger's 0."""
    kind, size, k = _settings(net)
    prefix = f"blocks.{net.attention_block}.attention."
    shapes = {"W_Q": (size, net.width), "W_K": (size, net.width), "W_V": (size, net.width), "W_O": (net.width, size)}
    found = {name: tensor(net.tensors, f"{prefix}{name}.weight", shape) for name, shape in shapes.items()}
    if found["W_Q"].any() or found["W_K"].any():
        raise Unproved("attention: W_Q and W_K are not 0")
    if len(net.sources) > size:
        raise Unproved("attention: it has fewer coordinates than means")
    n = tokens.maximum
    if net.tokens is not None and not (tokens.exact and net.tokens == n):
        raise Unproved(f"tokens: the head is made for {net.tokens}")
    share = Fraction(1, n) if kind == "PerformerAttention" else Fraction(1)
    of_values = _selection(found["W_V"], list(enumerate(net.sources)), share, "W_V")
    of_output = _selection(found["W_O"], [(c, i) for i, c in enumerate(net.targets)], Fraction(1), "W_O")
    mixing = _mixing(net, kind, (k, size), n, prefix)
    if mixing.roundings * U > 0.1:
        raise Unproved("attention: more tokens than rounding allows")
    gamma = mixing.roundings * U / (1 - mixing.roundings * U)
    relative = 0.0  # Π (1 + drift) (1 + γ) − 1: every weight is a factor of the one before
    for drift in (of_values, of_output, mixing.drift, gamma):
        relative += drift + relative * drift
    weights = {f"{prefix}{name}.weight" for name in shapes}
    return Head(relative * (1 + 1e-12), mixing.tensors | weights, mixing.mixed, n)


def _settings(net: Attending) -> tuple[str, int, int]:
    """The attention's type, the width of its head, and k; settings that the proof does not know are refused."""
    data, kind = net.attention, net.attention.get("type")
    if kind not in _SETTINGS or data.keys() != _SETTINGS[kind] | {"type", "d_model"}:
        raise Unproved(f"attention: unknown or with unknown settings: {kind}")
    if not same(data["d_model"], net.width) or not same(data["nhead"], 1) or data.get("query_bias", False) is not False:
        raise Unproved("attention: expected one head over the stream, without biases")
    softmax = data.get("normaliser", {"type": "Softmax"}) == {"type": "Softmax"}
    if not softmax or not isinstance(data.get("scale", True), bool):
        raise Unproved("attention: expected softmax, divided by √d or not")
    if not is_integer(seed := data.get("seed", 0)) or not -(2**63) <= seed < 2**64:
        raise Unproved(f"attention: ω cannot be drawn from the seed {seed!r}")
    return kind, _count(data["d_head"]), _count(data.get("k", 1))


def _mixing(net: Attending, kind: str, shape: tuple[int, int], n: int, prefix: str) -> _Mixing:
    """Of n tokens; E and F are (k, n), ω has the `shape` (k, width of the head)."""
    k = shape[0]
    if kind == "SoftmaxAttention":
        return _Mixing(n + 8)
    if kind == "LinformerAttention":
        if net.tokens is None or not same(net.attention["n_max"], n):
            raise Unproved("attention: E and F need the number of tokens")
        E, F = (tensor(net.tensors, f"{prefix}{name}", (k, n)) for name in ("E", "F"))
        largest = float(np.abs(E).max())
        if not largest < 1e100:
            raise Unproved("attention: E is not a finite mixture")
        drift = max(_relative(float(v), Fraction(1, n)) for v in (F.min(), F.max()))
        return _Mixing(n + k + 10, frozenset({f"{prefix}E", f"{prefix}F"}), drift, 2 * n * largest)
    if kind == "PerformerAttention" and net.tokens is None:
        raise Unproved("attention: the unnormalised head needs the number of tokens")
    omega = tensor(net.tensors, f"{prefix}omega", shape)
    if not float(np.abs(omega).max(initial=0.0)) < 1e100:
        raise Unproved("attention: ω is not finite")
    return _Mixing(n + 2 * k + 12, frozenset({f"{prefix}omega"}))


def _selection(matrix: Floats, places: list[tuple[int, int]], share: Fraction, name: str) -> float:
    """sup |entry/share − 1| over the given places; 0 everywhere else."""
    rest = matrix.copy()
    for i, j in places:
        rest[i, j] = 0.0
    if rest.any():
        raise Unproved(f"attention: {name} has weights that the ledger does not name")
    return max((_relative(float(matrix[i, j]), share) for i, j in places), default=0.0)


def _relative(value: float, wanted: Fraction) -> float:
    return float(abs(Fraction(value) / wanted - 1)) * (1 + 1e-15)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 2**20:
        raise Unproved(f"attention: expected an integer from 1 to 2^20, got {value!r}")
    return value

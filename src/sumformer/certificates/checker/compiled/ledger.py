"""The ledger as data: values of the ideal program, gadgets and their units, and the weights of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats
from sumformer.targets.node import Node


@dataclass(frozen=True)
class Functional:
    """t = Σ w v + offset."""

    terms: tuple[tuple[str, float], ...]
    offset: float


@dataclass(frozen=True)
class Value:
    """One value of the ideal program, and where the stream holds it from block `ready` on."""

    name: str
    op: str
    of: tuple[Functional, ...]
    expression: Node | None
    coordinate: int
    at: int
    ready: int
    error: float
    range: tuple[float, float]
    because: Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """Hidden units first … end − 1 of a block, where they write, and their share of b_2."""

    block: int
    first: int
    end: int
    writes: tuple[int, ...]
    constants: Mapping[int, float]


@dataclass(frozen=True)
class Gadget:
    kind: str
    values: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    stages: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Layer:
    """FC of one block: entries (row, column, weight) of W_1 and W_2, sorted, and the biases."""

    rows_1: NDArray[np.int64]
    columns_1: NDArray[np.int64]
    values_1: Floats
    b_1: Floats
    rows_2: NDArray[np.int64]
    columns_2: NDArray[np.int64]
    values_2: Floats
    b_2: Floats

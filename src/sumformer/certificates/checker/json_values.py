"""A value of a JSON document, of the right type and within bounds, or a `ValueError` that says what was expected."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

MAX_DEGREE = 4096
MAX_ITEMS = 200_000
MAX_DIGITS = 5000


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, float) or (is_integer(value) and abs(value) < 10**300)


def integer(value: Any, low: int = -(2**31), high: int = 2**31) -> int:
    if not is_integer(value) or not low <= value <= high:
        raise ValueError(f"expected an integer from {low} to {high}, got {value!r}")
    return int(value)


def number(value: Any) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value!r}")
    return float(value)


def fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > MAX_DIGITS or "e" in value.lower():
        raise ValueError("expected an exact number p/q as a string")
    return Fraction(value)


def items(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise ValueError(f"expected a list of at most {MAX_ITEMS} items")
    return value


def multi_index(value: Any) -> tuple[int, ...]:
    return tuple(integer(v, 0, MAX_DEGREE) for v in items(value))


def multi_indices(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(multi_index(v) for v in items(value))


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two that are equal, readers may see either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def pair(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("expected pairs [multi-index, coefficient]")
    return value


def same(value: Any, wanted: Any) -> bool:
    """Equal, and of one type: a network cannot be built with 1.0 or true for 1."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return value.keys() == wanted.keys() and all(same(value[key], item) for key, item in wanted.items())
    if isinstance(wanted, list) and isinstance(value, list):
        return len(value) == len(wanted) and all(same(v, w) for v, w in zip(value, wanted, strict=True))
    return type(value) is type(wanted) and bool(value == wanted)


def has_keys(data: Any, keys: set[str]) -> None:
    if not isinstance(data, dict) or data.keys() != keys:
        raise ValueError(f"expected an object with the keys {', '.join(sorted(keys))}")

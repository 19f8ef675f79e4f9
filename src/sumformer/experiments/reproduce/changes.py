"""NAME=VALUE ↔ a field of a configuration: how the command line says what differs from a size.

A VALUE is a number or a name; of several, `512,1024`, and of none, nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any

from sumformer.errors import InputError

OPTION = "--set"
OWN_OPTION = "device"
MAY_BE_ZERO = ("seed", "better_decay", "best_decay")


def changed(config: Any, usual: Any, changes: Sequence[str]) -> Any:
    """`config` with the `changes`; the types are those of `usual`, in which no field is empty."""
    kinds = {f.name: getattr(usual, f.name) for f in fields(usual) if f.name != OWN_OPTION}
    values = {}
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign or name not in kinds:
            raise InputError(f"{OPTION}: expected NAME=VALUE with a NAME of {', '.join(kinds)}; got {change!r}")
        values[name] = _value(kinds[name], text)
        numbers = values[name] if isinstance(values[name], tuple) else (values[name],)
        if not all(_makes_sense(number, name in MAY_BE_ZERO) for number in numbers):
            raise InputError(f"{OPTION} {change}: expected a value like {_text(kinds[name])}")
    return replace(config, **values)


def differences(config: Any, base: Any) -> list[str]:
    """The changes that make `config` of `base`."""
    names = [f.name for f in fields(config) if f.name != OWN_OPTION]
    return [f"{name}={_text(getattr(config, name))}" for name in names if getattr(config, name) != getattr(base, name)]


def _value(usual: Any, text: str) -> Any:
    """None for what cannot be read."""
    if isinstance(usual, tuple):
        return tuple(_value(usual[0], part.strip()) for part in text.split(",")) if text else ()
    try:
        return type(usual)(text)
    except ValueError:
        return None


def _makes_sense(value: Any, zero: bool) -> bool:
    return isinstance(value, str) or (value is not None and isfinite(value) and (value > 0 or (zero and value == 0)))


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

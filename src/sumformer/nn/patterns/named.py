"""NAME:a,b,… → a sparse pattern with these arguments: window:1, strided:2, fixed:2, star:1, bigbird:1,1."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from sumformer.errors import InputError
from sumformer.nn.patterns.big_bird import BigBird
from sumformer.nn.patterns.fixed import Fixed
from sumformer.nn.patterns.longformer import Longformer
from sumformer.nn.patterns.pattern import Pattern
from sumformer.nn.patterns.random import Random
from sumformer.nn.patterns.star import Star
from sumformer.nn.patterns.strided import Strided
from sumformer.nn.patterns.window import Window

NAMES: dict[str, Callable[..., Pattern]] = {
    "window": Window,
    "strided": Strided,
    "fixed": Fixed,
    "star": Star,
    "longformer": Longformer,
    "bigbird": BigBird,
    "random": Random,
}


def named(text: str) -> Pattern:
    """The pattern, or an error that lists what there is."""
    name, _, rest = text.strip().lower().replace("_", "").replace("-", "").partition(":")
    if name not in NAMES:
        raise InputError(f"pattern {text!r}: expected one of {', '.join(NAMES)} with its numbers, as window:1")
    cls = NAMES[name]
    wanted = list(inspect.signature(cls).parameters)
    numbers = [part.strip() for part in rest.split(",") if part.strip()]
    if not all(number.isdecimal() for number in numbers) or len(numbers) > len(wanted):
        raise InputError(f"pattern {text!r}: expected whole numbers {', '.join(wanted)} after the colon")
    try:
        return cls(*(int(number) for number in numbers))
    except TypeError:
        raise InputError(f"pattern {text!r}: expected the numbers {', '.join(wanted)}, got {len(numbers)}") from None

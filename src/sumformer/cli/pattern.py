"""`--pattern NAME:a,b,…` → a sparse pattern with these arguments: window:1, strided:2, fixed:2, star:1, bigbird:1,1."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from sumformer.errors import InputError
from sumformer.nn import patterns

NAMES: dict[str, Callable[..., patterns.Pattern]] = {
    "window": patterns.Window,
    "strided": patterns.Strided,
    "fixed": patterns.Fixed,
    "star": patterns.Star,
    "longformer": patterns.Longformer,
    "bigbird": patterns.BigBird,
    "random": patterns.Random,
}


def read_pattern(text: str) -> patterns.Pattern:
    """The pattern, or an error that lists what there is."""
    name, _, rest = text.strip().lower().replace("_", "").replace("-", "").partition(":")
    if name not in NAMES:
        raise InputError(f"--pattern {text}: expected one of {', '.join(NAMES)} with its numbers, as window:1")
    cls = NAMES[name]
    wanted = list(inspect.signature(cls).parameters)
    numbers = [part.strip() for part in rest.split(",") if part.strip()]
    if not all(number.isdecimal() for number in numbers) or len(numbers) > len(wanted):
        raise InputError(f"--pattern {text}: expected whole numbers {', '.join(wanted)} after the colon")
    try:
        return cls(*(int(number) for number in numbers))
    except TypeError:
        raise InputError(f"--pattern {text}: expected the numbers {', '.join(wanted)}, got {len(numbers)}") from None

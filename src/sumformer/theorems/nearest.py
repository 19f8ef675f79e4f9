"""The least ε that is not refused, to a factor of 2 where time allows: tried, so that what is named can be had."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import isfinite, sqrt

from sumformer.algebra.rounding import shown_up
from sumformer.errors import DomainError, RefusedError

SECONDS = 20.0
TRIES = 14
RATIO = 2.0


def nearest(attempt: Callable[[float], object], epsilon: float, guess: float, seconds: float = SECONDS) -> float | None:
    """An ε′ > ε at which `attempt` went through, first tried at `guess`; None where none was found in time."""
    if not isfinite(guess):
        return None
    end = time.perf_counter() + seconds
    low, high, found = epsilon, max(_round_up(guess), _round_up(RATIO * epsilon)), None
    for _ in range(TRIES):
        if time.perf_counter() > end or (found is not None and found <= RATIO * low):
            break
        try:
            attempt(high)
        except RefusedError as refusal:
            low = high
            high = max(8 * high, refusal.reachable or 0.0) if found is None else sqrt(low) * sqrt(found)
        except DomainError:
            return None
        else:
            found, high = high, sqrt(low) * sqrt(high)
        if not isfinite(high):
            break
        high = _round_up(high)
    return found


def _round_up(value: float) -> float:
    """To two digits, so that the number printed is the number tried."""
    return float(shown_up(value, 2))

"""Numbers as text: 0.00026741 → "2.68e-4". A bound is rounded up: what is read is never less than what is proved."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def rounded_up(value: float, digits: int = 3) -> str:
    """The least number of so many significant digits that is ≥ value."""
    return _text(value, digits, ROUND_CEILING)


def nearest(value: float, digits: int = 3) -> str:
    """The number of so many significant digits nearest to value."""
    return _text(value, digits, ROUND_HALF_EVEN)


def _text(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(value)
    if not exact.is_finite() or exact == 0:
        return str(exact) if not exact.is_finite() else "0"
    short = Context(prec=digits, rounding=rounding).create_decimal(exact).normalize()
    exponent = short.adjusted()
    if -3 <= exponent <= 5:
        return f"{short:f}"
    return f"{short.scaleb(-exponent):f}e{exponent}"


def duration(seconds: float) -> str:
    """3.2 µs, 45 ms, 1.3 s."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor or unit == "µs":
            return f"{nearest(seconds / factor, 3)} {unit}"
    raise AssertionError("unreachable")


def count(n: int) -> str:
    """2³⁰ for a large power of two, else 65 536 in groups of three."""
    if n >= 2**20 and n & (n - 1) == 0:
        return "2" + str(n.bit_length() - 1).translate(_SUPERSCRIPTS)
    return f"{n:,}".replace(",", "\u202f")


def decade(exponent: int) -> str:
    """10⁻⁴."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)

"""𝒳 = Π_c [lower_c, upper_c] ⊂ ℝ^d, exactly, and the numbers n of tokens a target is asked for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sumformer.errors import InputError, OutsideBoxError, ShapeError
from sumformer.targets.printing import constant
from sumformer.targets.tree import MAX_BITS, is_short

if TYPE_CHECKING:
    from torch import Tensor

MAX_TOKENS = 2**30
Pairs = tuple[Any, ...] | list[Any]
"""(low, high), or one such pair for each coordinate."""

_NUMBER = re.compile(r"[+-]?([0-9]{1,1300}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3}|/[0-9]{1,1300})?")


@dataclass(frozen=True, slots=True)
class Box:
    """Π_c [lower_c, upper_c], lower_c < upper_c, exact rationals."""

    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            sizes = f"{len(self.lower)} and {len(self.upper)}"
            raise InputError(f"Box: expected as many lower as upper bounds, at least one; got {sizes}")
        for c, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not (isinstance(low, Fraction) and isinstance(high, Fraction)):
                raise InputError(f"Box: expected Fractions, got {low!r} and {high!r} in coordinate {c}")
            if not (is_short(low) and is_short(high)):
                raise InputError(f"Box: expected bounds of at most {MAX_BITS} bits in coordinate {c}")
            if not low < high:
                raise InputError(f"Box: expected lower < upper, got {low} and {high} in coordinate {c}")

    @classmethod
    def unit(cls, d: int) -> Box:
        """[0,1]^d."""
        return cls((Fraction(0),) * d, (Fraction(1),) * d)

    @classmethod
    def parse(cls, text: str, d: int) -> Box:
        """Read "0:1,-2:2", one interval per coordinate, or "-1:1" for all d of them."""
        intervals = [_interval(part, text) for part in text.split(",")]
        if len(intervals) == 1:
            intervals = intervals * d
        if len(intervals) != d:
            expected = "1 interval" if d == 1 else f"1 interval or {d} (one per coordinate)"
            raise InputError(f"box {text!r}: expected {expected} for d = {d}, got {len(intervals)}")
        return cls(tuple(low for low, _ in intervals), tuple(high for _, high in intervals))

    @classmethod
    def of_pairs(cls, pairs: object, d: int) -> Box:
        """(-1, 1) for all d coordinates, or a pair for each; a float is the decimal it prints as."""
        wanted = "expected box as '-1:1', '0:1,-2:2', (-1, 1), a pair for each coordinate, or a Box"
        if not isinstance(pairs, list | tuple) or not pairs:
            raise InputError(f"target: {wanted}; got {pairs!r}")
        listed = [pairs] if not isinstance(pairs[0], list | tuple) else list(pairs)
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in listed):
            raise InputError(f"target: {wanted}; got {pairs!r}")
        return cls.parse(",".join(f"{low}:{high}" for low, high in listed), d)

    @property
    def d(self) -> int:
        return len(self.lower)

    @property
    def centre(self) -> tuple[Fraction, ...]:
        return tuple((a + b) / 2 for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def radius(self) -> tuple[Fraction, ...]:
        return tuple((b - a) / 2 for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def volume(self) -> Fraction:
        """Π_c (upper_c − lower_c)."""
        return math.prod((b - a for a, b in zip(self.lower, self.upper, strict=True)), start=Fraction(1))

    def contains(self, X: Tensor) -> Tensor:
        """Per token of X (…, d), exactly: whether lower ≤ x ≤ upper. NaN is outside."""
        if X.dim() == 0 or X.shape[-1] != self.d:
            raise ShapeError("Box.contains", f"X of shape (…, {self.d})", X.shape)
        x = X.double()
        # The comparison with a float64 x is exact: x ≥ a iff x ≥ the least float64 that is ≥ a.
        low, high = x.new_tensor([_up(a) for a in self.lower]), x.new_tensor([-_up(-b) for b in self.upper])
        return ((x >= low) & (x <= high)).all(-1)

    def check(self, X: Tensor) -> None:
        """Raise `OutsideBoxError` with the index of the first token outside."""
        outside = (~self.contains(X)).nonzero()
        if len(outside):
            index = tuple(int(i) for i in outside[0])
            raise OutsideBoxError(f"token {index} = {X[index].tolist()} lies outside the box {self}", index)

    def __str__(self) -> str:
        pairs = [f"{constant(a)[0]}:{constant(b)[0]}" for a, b in zip(self.lower, self.upper, strict=True)]
        return pairs[0] if len(set(pairs)) == 1 else ",".join(pairs)

    def formula(self) -> str:
        """[0,1]^2 or [0,1]×[-2,2]."""
        pairs = [f"[{constant(a)[0]},{constant(b)[0]}]" for a, b in zip(self.lower, self.upper, strict=True)]
        if len(set(pairs)) > 1:
            return "×".join(pairs)
        return pairs[0] if self.d == 1 else f"{pairs[0]}^{self.d}"


@dataclass(frozen=True, slots=True)
class Tokens:
    """minimum ≤ n ≤ maximum; with `symbolic`, n is a symbol that must cancel ("any")."""

    minimum: int
    maximum: int
    symbolic: bool = False

    def __post_init__(self) -> None:
        for bound in (self.minimum, self.maximum):
            if not isinstance(bound, int) or isinstance(bound, bool):
                raise InputError(f"tokens: expected integers, got {bound!r}")
        if not 1 <= self.minimum <= self.maximum <= MAX_TOKENS:
            order = "a lower end below the upper one and " if self.minimum > self.maximum >= 1 else ""
            raise InputError(f"tokens: expected {order}1 ≤ n ≤ {MAX_TOKENS}, got {self}")

    @classmethod
    def any(cls, maximum: int = MAX_TOKENS) -> Tokens:
        return cls(1, maximum, symbolic=True)

    @classmethod
    def parse(cls, text: str | int) -> Tokens:
        """Read "3" (exactly 3), "..1000" (up to 1000), "2..1000", "any" (n ≤ 2^30) or "any..5000"."""
        match = re.fullmatch(r"(any|[0-9]{0,30})(\.\.([0-9]{1,30}))?", str(text).strip())
        if match is None or match.group() == "" or isinstance(text, bool):
            raise InputError(f"tokens {text!r}: expected a number as 3, a range as ..1000, or any")
        first, last = match.group(1), match.group(3)
        if first == "any":
            return cls.any(MAX_TOKENS if last is None else int(last))
        low = int(first or "1")
        return cls(low, low if last is None else int(last))

    @property
    def exact(self) -> bool:
        """Whether one n only is allowed."""
        return self.minimum == self.maximum

    def allows(self, n: int) -> bool:
        return self.minimum <= n <= self.maximum

    def at_least(self, minimum: int) -> Tokens:
        """The same numbers without those below `minimum`."""
        if minimum > self.maximum:
            raise InputError(f"tokens {self}: at least {minimum} tokens are needed")
        return Tokens(max(minimum, self.minimum), self.maximum, self.symbolic)

    def __str__(self) -> str:
        if self.symbolic:
            return "any" if self.maximum == MAX_TOKENS else f"any..{self.maximum}"
        if self.exact:
            return str(self.minimum)
        return f"{self.minimum if self.minimum > 1 else ''}..{self.maximum}"

    def formula(self) -> str:
        """n = 3, n ≤ 1000, 2 ≤ n ≤ 1000, any n, any n ≥ 2 up to 1000."""
        if self.symbolic:
            if self.minimum > 1:
                return f"any n ≥ {self.minimum}" + ("" if self.maximum == MAX_TOKENS else f" up to {self.maximum}")
            return "any n" if self.maximum == MAX_TOKENS else f"any n ≤ {self.maximum}"
        if self.exact:
            return f"n = {self.minimum}"
        return f"{f'{self.minimum} ≤ ' if self.minimum > 1 else ''}n ≤ {self.maximum}"


def _interval(part: str, text: str) -> tuple[Fraction, Fraction]:
    ends = [end.strip() for end in part.split(":")]
    if len(ends) != 2 or not all(_NUMBER.fullmatch(end) for end in ends):
        raise InputError(f"box {text!r}: expected intervals as 0:1 or -1/2:0.5, got {part!r}")
    try:
        return Fraction(ends[0]), Fraction(ends[1])
    except (ValueError, ZeroDivisionError):
        raise InputError(f"box {text!r}: {part!r} is no pair of numbers") from None


def _up(a: Fraction) -> float:
    """The least float64 that is ≥ a."""
    try:
        nearest = float(a)
    except OverflowError:
        return math.inf if a > 0 else -math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) >= a else math.nextafter(nearest, math.inf)

"""What both PTX programs of power sums say alike: the values p_k(t) of one token, and the products of them."""

from __future__ import annotations

from sumformer.kernels.power_sums_cover import Cover, Exponents

LANES = 32
CONSTRAINTS = "=r,l,l,l,r,r,r,r,r,r,r"
X, KEEP, PARTIAL, N, PROGRAMS, SHARE, *MAP = (f"${i}" for i in range(1, 11))
"""Addresses; tokens of a sequence, programs for each, what a program has of it; inverse and shift in float64."""
ONE, ZERO, MINUS_ONE = "0f3F800000", "0f00000000", "0fBF800000"
WIDE_ZERO, WIDE_MINUS_ONE = "0d0000000000000000", "0dBFF0000000000000"


class Values:
    """p_k(t) of t = x, or T_k of t = x · inverse + shift; hidden tokens, where `shown` is false, are taken as t = 0.

    `short`: inverse and shift are float32 numbers, so that t takes no float64 to be rounded once.
    """

    def __init__(self, cover: Cover, chebyshev: bool, masked: bool, short: bool = False) -> None:
        self.cover, self.chebyshev, self.masked, self.short = cover, chebyshev, masked, short
        self.d = len(cover.radices)
        self.long = [self.longest(which) for which in (0, 1)]
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += [line if line.endswith(":") else line + ";" for line in lines]

    def longest(self, which: int) -> int:
        """The coordinate with most exponents."""
        rows = self.cover.side(which)
        return max(range(self.d), key=lambda c: len({row[c] for row in rows}))

    def value_registers(self) -> None:
        most, parts = self.cover.degree + 1, len(self.cover.side(0)) + len(self.cover.side(1))
        self.say(
            f".reg .f32 twice, minus, weight, part<{parts}>, " + ", ".join(f"u{c}_<{most}>" for c in range(self.d))
        )
        self.say(".reg .f64 inverse, shift, wide", ".reg .f32 factor, summand")
        if self.cover.wide:
            self.say(".reg .f64 double, less, " + ", ".join(f"e{c}_<{most}>" for c in range(self.d)))
        self.say(".reg .pred shown")

    def stand(self, parts: int = 1) -> None:
        """Which part, which sequence of the batch, and which of its programs; where its tokens begin; their map."""
        self.say("mov.u32 $0, 0", "mov.u32 tid, %tid.x", "mov.u32 cta, %ctaid.x")
        if parts > 1:
            self.say("mov.u32 i, %nctaid.x", f"div.u32 i, i, {parts}", "div.u32 part, cta, i", "rem.u32 cta, cta, i")
        self.say(f"rem.u32 which, cta, {PROGRAMS}", f"div.u32 batch, cta, {PROGRAMS}")
        self.say(f"mul.wide.u32 sequence, batch, {N}")
        if self.chebyshev:
            self.say(f"mov.b64 inverse, {{{MAP[0]}, {MAP[1]}}}", f"mov.b64 shift, {{{MAP[2]}, {MAP[3]}}}")
            self.say("cvt.rn.f32.f64 factor, inverse", "cvt.rn.f32.f64 summand, shift")

    def fetch(self, names: list[str], place: str, away: int, condition: str) -> None:
        """The coordinates of a token, `away` bytes behind `place`."""
        if self.d in (2, 4):
            self.say(f"{condition}ld.global.nc.v{self.d}.f32 {{{', '.join(names)}}}, [{place}+{away}]")
        else:
            self.say(*(f"{condition}ld.global.nc.f32 {x}, [{place}+{away + 4 * c}]" for c, x in enumerate(names)))

    def values(self, tokens: list[str]) -> None:
        """All that rows are made of, from the names of the coordinates."""
        for c, x in enumerate(tokens):
            needed = {row[c] for which in (0, 1) for row in self.cover.side(which)} - {0}
            if self.chebyshev:
                self.polynomials(c, x, needed)
            else:
                self.powers(c, x, needed)

    def powers(self, c: int, x: str, needed: set[int]) -> None:
        """t^k from t and t^(k−1), or t^h and t^(k−h): k − 1 roundings."""
        self.say(f"selp.f32 u{c}_1, {x}, {ZERO}, shown")
        h = self.cover.radices[c]
        for k in sorted({*range(2, min(h, max(needed)) + 1), *needed} - {1}):
            one = 1 if k <= h else h
            self.say(f"mul.rn.f32 u{c}_{k}, u{c}_{k - one}, u{c}_{one}")

    def polynomials(self, c: int, x: str, needed: set[int]) -> None:
        """T_k = 2 t T_(k−1) − T_(k−2) up to h, T_k = 2 T_h T_(k−h) − T_(k−2h) beyond; t is rounded once.

        Where they are put together from products (`Cover.wide`), in float64 and then rounded.
        """
        if self.short:
            self.say(f"fma.rn.f32 u{c}_1, {x}, factor, summand", f"selp.f32 u{c}_1, u{c}_1, {ZERO}, shown")
        else:
            self.say(f"cvt.f64.f32 wide, {x}", "fma.rn.f64 wide, wide, inverse, shift")
            self.say(f"selp.f64 wide, wide, {WIDE_ZERO}, shown", f"cvt.rn.f32.f64 u{c}_1, wide")
        wide, h = self.cover.wide and self.cover.folded(c), self.cover.radices[c]
        name, kind, one = (f"e{c}_", "f64", WIDE_MINUS_ONE) if wide else (f"u{c}_", "f32", MINUS_ONE)
        twice, minus = ("double", "less") if wide else ("twice", "minus")
        self.say(*([f"mov.f64 {name}1, wide"] if wide else []))
        for step, last in ((1, h), (h, max(needed))) if self.cover.folded(c) else ((1, max(needed)),):
            self.say(f"add.rn.{kind} {twice}, {name}{step}, {name}{step}")
            for k in range(2 * step, last + 1, step):
                before = f"neg.{kind} {minus}, {name}{k - 2 * step}" if k > 2 * step else f"mov.{kind} {minus}, {one}"
                self.say(before, f"fma.rn.{kind} {name}{k}, {twice}, {name}{k - step}, {minus}")
        self.say(*(f"cvt.rn.f32.f64 u{c}_{k}, e{c}_{k}" for k in sorted(needed - {1}) if wide))

    def row(
        self, side: int, row: Exponents, name: str, parts: dict[tuple[int, Exponents], str], weight: str = "weight"
    ) -> str:
        """A product, of A times the weight; `parts`: what rows have beside the longest coordinate, made once."""
        long = self.long[side]
        rest = (*row[:long], 0, *row[long + 1 :])
        if (side, rest) not in parts:
            factors = ([] if side else [weight]) + [f"u{c}_{k}" for c, k in enumerate(rest) if k]
            parts[side, rest] = self.product(f"part{len(parts)}", factors)
        return self.product(name, [parts[side, rest], *([f"u{long}_{row[long]}"] if row[long] else [])])

    def product(self, name: str, factors: list[str]) -> str:
        """The name of what holds it, 1 and what is one factor alone being there already."""
        factors = [f for f in factors if f != ONE]
        if len(factors) < 2:
            return factors[0] if factors else ONE
        self.say(f"mul.rn.f32 {name}, {factors[0]}, {factors[1]}")
        self.say(*(f"mul.rn.f32 {name}, {name}, {factor}" for factor in factors[2:]))
        return name

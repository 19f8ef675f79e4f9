"""Power sums as one PTX program of a warp: tokens in, the sums of all products of a `Cover` out.

Thirty-two tokens at a time, each lane makes the values of one token in float32 and puts them into shared memory. Then
four times eight tokens: lane 4 q + c reads row q of every set for tokens c and c + 4 of them, as float64, and
    sums (16, 8) += rows (16, 8) · columns (8, 8)
runs in the tensor cores for each product, whose operands lie as they were read. Products of float32 are exact in
float64. No atomics and a fixed order: two runs agree bit for bit. It is text because Triton has no such product.
"""

from __future__ import annotations

from functools import cache

from sumformer.kernels.power_sums_cover import EIGHT, Cover, Exponents
from sumformer.kernels.power_sums_values import (
    KEEP,
    LANES,
    ONE,
    PARTIAL,
    SHARE,
    WIDE_ZERO,
    ZERO,
    N,
    Values,
    X,
)

_MULTIPLY = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"


@cache
def products(cover: Cover, chebyshev: bool, masked: bool) -> str:
    """p_k(t) of t = x, or T_k of t = x · inverse + shift; the values of hidden tokens are those of t = 0, times 0."""
    return _Program(cover, chebyshev, masked).text()


def products_bytes(cover: Cover) -> int:
    return LANES * _token_bytes(cover)


def _width(cover: Cover) -> int:
    """Sets that are read at a time."""
    return 4 if len(cover.sets) > 2 else 2


def _token_bytes(cover: Cover) -> int:
    """`_width` sets side by side, row by row; so many words beyond a multiple of 32 that no bank is asked twice."""
    width = _width(cover)
    words = EIGHT * width * -(-len(cover.sets) // width)
    return 4 * (-(-words // 32) * 32 + width)


class _Program(Values):
    def __init__(self, cover: Cover, chebyshev: bool, masked: bool) -> None:
        super().__init__(cover, chebyshev, masked)
        self.width, self.stride = _width(cover), _token_bytes(cover)
        self.groups = -(-len(cover.sets) // self.width)

    def text(self) -> str:
        self.registers()
        self.start()
        self.load()
        self.say("LOOP:")
        self.take()
        self.load()
        self.rows()
        self.say("bar.warp.sync 0xffffffff")
        for step in range(LANES // 8):
            self.multiply(step)
        self.say("bar.warp.sync 0xffffffff", "add.u32 chunk, chunk, 1")
        self.say("setp.lt.u32 more, chunk, last", "@more bra LOOP")
        self.finish()
        return "{ " + " ".join(self.lines) + " }"

    def registers(self) -> None:
        self.value_registers()
        self.say(
            f".shared .align 128 .b8 store[{products_bytes(self.cover)}]",
            f".reg .f32 x<{self.d}>, y<{self.d}>, value<4>, r<{2 * self.width * self.groups}>",
            f".reg .f64 s<{4 * len(self.cover.products)}>, v<{2 * self.width * self.groups}>",
            ".reg .b32 tid, cta, which, batch, token, chunk, last, chunks, read, write, mark, next, low",
            ".reg .b64 sequence, place, address",
            ".reg .pred more, inside",
        )

    def start(self) -> None:
        """Where the lane stands; all sums are 0."""
        self.stand()
        self.say("mov.u32 read, store", "shr.u32 low, tid, 2", f"mad.lo.u32 write, tid, {self.stride}, read")
        self.say(f"mad.lo.u32 read, low, {4 * self.width}, read")
        self.say("and.b32 low, tid, 3", f"mad.lo.u32 read, low, {EIGHT // self.width * self.stride}, read")
        self.say(*(f"mov.f64 s{i}, {WIDE_ZERO}" for i in range(4 * len(self.cover.products))))
        self.say(f"add.u32 chunks, {N}, {LANES - 1}", f"div.u32 chunks, chunks, {LANES}")
        self.say(f"mul.lo.u32 chunk, which, {SHARE}", f"add.u32 last, chunk, {SHARE}", "min.u32 last, last, chunks")
        self.say(f"mad.lo.u32 token, chunk, {LANES}, tid", "setp.ge.u32 more, chunk, last", "@more bra FINISH")

    def load(self) -> None:
        """The coordinates, and the mark, of the lane's next token of the sequence; 0 behind its end."""
        self.say(f"setp.lt.u32 inside, token, {N}", "cvt.u64.u32 place, token", "add.u64 place, place, sequence")
        self.say(f"mad.lo.u64 address, place, {4 * self.d}, {X}", f"add.u32 token, token, {LANES}")
        names = [f"y{c}" for c in range(self.d)]
        self.say(*(f"mov.f32 {y}, {ZERO}" for y in names))
        self.fetch(names, "address", 0, "@inside ")
        self.say("selp.u32 next, 1, 0, inside")
        if self.masked:
            self.say(f"add.u64 address, place, {KEEP}", "@inside ld.global.nc.u8 next, [address+0]")

    def take(self) -> None:
        """What was loaded becomes the token whose values are made."""
        self.say("mov.u32 mark, next", *(f"mov.f32 x{c}, y{c}" for c in range(self.d)))

    def rows(self) -> None:
        """Products of the values, those of A times the weight; four sets at a time."""
        self.say("setp.ne.u32 shown, mark, 0", f"selp.f32 weight, {ONE}, {ZERO}, shown")
        self.values([f"x{c}" for c in range(self.d)])
        parts: dict[tuple[int, Exponents], str] = {}
        for group in range(self.groups):
            for q in range(EIGHT):
                names = []
                for i in range(self.width * group, self.width * (group + 1)):
                    side, rows = self.cover.sets[i] if i < len(self.cover.sets) else (0, ())
                    name = f"value{i % self.width}"
                    names.append(ZERO if q >= len(rows) else self.row(side, rows[q], name, parts))
                place = 4 * self.width * (EIGHT * group + q)
                self.say(f"st.shared.v{self.width}.f32 [write+{place}], {{{', '.join(names)}}}")

    def multiply(self, step: int) -> None:
        """Eight tokens, those of c = 0 … 3 so far apart that no bank is asked twice."""
        apart = EIGHT // self.width
        away = [(s // apart * 4 * apart + s % apart) * self.stride for s in (2 * step, 2 * step + 1)]
        loaded: set[int] = set()
        seen: set[int] = set()
        for number, (first, second, third) in enumerate(self.cover.products):
            for i in (third, first, second):
                group = i // self.width
                if group not in loaded:
                    for half in (0, 1):
                        names = ", ".join(f"r{2 * (self.width * group + j) + half}" for j in range(self.width))
                        place = away[half] + 4 * self.width * EIGHT * group
                        self.say(f"ld.shared.v{self.width}.f32 {{{names}}}, [read+{place}]")
                if i not in seen:
                    self.say(*(f"cvt.f64.f32 v{2 * i + half}, r{2 * i + half}" for half in (0, 1)))
                loaded.add(group)
                seen.add(i)
            sums = "{" + ", ".join(f"s{4 * number + i}" for i in range(4)) + "}"
            rows = ", ".join(f"v{2 * i + half}" for half in (0, 1) for i in (first, second))
            self.say(f"{_MULTIPLY} {sums}, {{{rows}}}, {{v{2 * third}, v{2 * third + 1}}}, {sums}")

    def finish(self) -> None:
        """Lane 4 r + c holds columns 2 c and 2 c + 1 of rows r and r + 8."""
        half = 8 * EIGHT * EIGHT  # bytes of eight rows
        self.say("FINISH:", f"mul.wide.u32 place, cta, {2 * half * len(self.cover.products)}")
        self.say(f"add.u64 address, place, {PARTIAL}", "mul.wide.u32 place, tid, 16", "add.u64 address, address, place")
        for i in range(2 * len(self.cover.products)):
            self.say(f"st.global.v2.f64 [address+{half * i}], {{s{2 * i}, s{2 * i + 1}}}")

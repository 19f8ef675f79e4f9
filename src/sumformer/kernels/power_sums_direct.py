"""Power sums of few features as one PTX program of a warp: two registers for each sum, one multiply-add for each token.

A lane takes a token at a time, makes A and B of a `Cover` and adds A_i B_j to a chain of float32 where |β| ≤ m. Chains
of SHORT tokens are added to a sum a; after LONG of them high, in shared memory, takes over what it can of a,
    high' = fl(high + a),  a' = fl(a − fl(high' − high)).
A chain of 7 makes 7 roundings, each of at most u = 2⁻²⁴ times the Σ|A B| so far, and a makes 8 more. Taking a over is
exact if |high| ≥ |a| and else off by u |a|: one rounding more. What is left of a is below 2 u Σ|A B|, so adding to it
costs 2 u² Σ|A B| a chain, and no lane of programs that fill the device sees 3·10⁶ of them: 16.4 u Σ|A B| in all. At the
end the lanes are added in float64, in a fixed order: two runs agree bit for bit. Sums that are more than a lane has
registers for are dealt out in parts, each the work of programs of its own.
"""

from __future__ import annotations

from functools import cache

from sumformer.kernels.power_sums_cover import Cover, Exponents
from sumformer.kernels.power_sums_values import KEEP, LANES, ONE, PARTIAL, PROGRAMS, SHARE, ZERO, N, Values, X

SHORT, LONG = 7, 8
"""Tokens of a chain, and chains between two carries."""
BLOCK = SHORT * LANES
MOST, EACH = 96, 72
"""Sums of one part alone, and of one of several."""
_GROUP = 16 * LANES  # bytes of four sums in shared memory


@cache
def direct(cover: Cover, chebyshev: bool, masked: bool, short: bool) -> str:
    return _Direct(cover, chebyshev, masked, short).text()


@cache
def parts(cover: Cover) -> tuple[tuple[tuple[Exponents, Exponents], ...], ...]:
    """The pairs, dealt out."""
    pairs = list(cover.pairs)
    count = 1 if len(pairs) <= MOST else -(-len(pairs) // EACH)
    size = -(-len(pairs) // count)
    return tuple(tuple(pairs[start : start + size]) for start in range(0, len(pairs), size))


def direct_width(cover: Cover) -> int:
    """Numbers that a part has in a row of `partial`."""
    return -(-len(parts(cover)[0]) // LANES) * LANES


def direct_places(cover: Cover) -> dict[tuple[Exponents, Exponents], int]:
    """Where in a row of `partial` the sum of each pair lies."""
    width = direct_width(cover)
    return {pair: p * width + i for p, part in enumerate(parts(cover)) for i, pair in enumerate(part)}


def direct_bytes(cover: Cover) -> int:
    return _GROUP * -(-len(parts(cover)[0]) // 4)


class _Direct(Values):
    def __init__(self, cover: Cover, chebyshev: bool, masked: bool, short: bool) -> None:
        super().__init__(cover, chebyshev, masked, short)
        self.parts = parts(cover)
        self.size = len(self.parts[0])

    def text(self) -> str:
        self.registers()
        self.start()
        for number, pairs in enumerate(self.parts):
            name = chr(ord("A") + number)
            self.say(f"PART{name}:")
            if number + 1 < len(self.parts):
                self.say(f"setp.ne.u32 again, part, {number}", f"@again bra PART{chr(ord(name) + 1)}")
            self.pairs = pairs
            self.chains(name)
            self.remainder(name)
        self.finish()
        return "{ " + " ".join(self.lines) + " }"

    def registers(self) -> None:
        self.value_registers()
        rows = len(self.cover.side(0)) + len(self.cover.side(1))
        self.say(
            f".shared .align 128 .b8 store[{direct_bytes(self.cover)}]",
            f".reg .f32 c<{self.size}>, a<{self.size}>, row<{rows}>, x<{SHORT * self.d}>, h<4>, n<4>, s",
            ".reg .b32 tid, cta, part, which, batch, mine, blocks, first, left, inner, i, j, f",
            f".reg .b32 o<8>, k<{SHORT}>",
            ".reg .b64 p, q, sequence, place",
            ".reg .pred more, again, inside",
            ".reg .f64 total<4>, e",
        )

    def start(self) -> None:
        """Which part, and where the lane stands; high = a = 0."""
        self.stand(len(self.parts))
        self.say(*(["mov.u32 part, 0"] if len(self.parts) == 1 else []))
        self.say("mov.u32 mine, store", "mad.lo.u32 mine, tid, 16, mine")
        self.say(*(f"mov.f32 a{i}, {ZERO}" for i in range(self.size)))
        self.keep_sums()
        self.say(f"div.u32 blocks, {N}, {BLOCK}", f"mul.lo.u32 first, which, {SHARE}", "min.u32 first, first, blocks")
        self.say(f"add.u32 left, first, {SHARE}", "min.u32 left, left, blocks", "sub.u32 left, left, first")
        self.say(f"mad.lo.u32 i, first, {BLOCK}, tid", f"mul.lo.u32 first, blocks, {BLOCK}")
        self.point()

    def point(self) -> None:
        """p, q: where token i of the sequence begins, and its mark."""
        self.say("cvt.u64.u32 place, i", "add.u64 place, place, sequence", f"add.u64 q, place, {KEEP}")
        self.say(f"mad.lo.u64 p, place, {4 * self.d}, {X}")

    def load(self, slot: int, ahead: int, condition: str = "") -> None:
        """The coordinates, and the mark, of the token `ahead` tokens of the lane behind p and q."""
        self.fetch(self.coordinates(slot), "p", 4 * self.d * LANES * ahead, condition)
        if self.masked:
            self.say(f"{condition}ld.global.nc.u8 k{slot}, [q+{LANES * ahead}]")

    def coordinates(self, slot: int) -> list[str]:
        return [f"x{slot * self.d + c}" for c in range(self.d)]

    def chains(self, name: str) -> None:
        self.say("setp.eq.u32 again, left, 0", f"@again bra REST{name}", f"mov.u32 inner, {LONG}")
        for slot in range(SHORT):
            self.load(slot, slot)
        self.say(f"CHAIN{name}:", "sub.u32 left, left, 1", "setp.ne.u32 more, left, 0", "sub.u32 inner, inner, 1")
        for slot in range(SHORT):
            self.say(f"setp.ne.u32 shown, {f'k{slot}' if self.masked else 1}, 0")
            self.token(slot, weighted=self.masked, first=slot == 0)
            self.load(slot, slot + SHORT, "@more ")
        self.say(f"add.u64 p, p, {4 * self.d * BLOCK}", f"add.u64 q, q, {BLOCK}")
        self.add_chains()
        self.say("setp.ne.u32 again, inner, 0", f"@again bra ON{name}", f"mov.u32 inner, {LONG}")
        self.carry()
        self.say(f"ON{name}:", f"@more bra CHAIN{name}")

    def remainder(self, name: str) -> None:
        """What is left of the sequence, one token of a lane at a time; `first` is the same for all of them."""
        self.say(f"REST{name}:", f"mad.lo.u32 first, which, {LANES}, first")
        self.say(f"STEP{name}:", f"setp.ge.u32 again, first, {N}", "@again bra FINISH")
        self.say("add.u32 i, first, tid", f"setp.lt.u32 inside, i, {N}")
        self.point()
        self.say(*(f"mov.f32 {x}, {ZERO}" for x in self.coordinates(0)), "selp.u32 k0, 1, 0, inside")
        self.load(0, 0, "@inside ")
        self.say("setp.ne.u32 shown, k0, 0")
        self.token(0, weighted=True, first=True)
        self.carry()
        self.add_chains()
        self.say(f"mad.lo.u32 first, {PROGRAMS}, {LANES}, first", f"bra STEP{name}")

    def token(self, slot: int, weighted: bool, first: bool) -> None:
        """A_i B_j for each pair, added to the chain unless it is the first; A is 0 for hidden tokens."""
        self.say(f"selp.f32 weight, {ONE}, {ZERO}, shown")
        self.values(self.coordinates(slot))
        made: dict[tuple[int, Exponents], str] = {}
        names: dict[tuple[int, Exponents], str] = {}
        weight = "weight" if weighted else ONE
        for i, (a, b) in enumerate(self.pairs):
            for key in ((0, a), (1, b)):
                if key not in names:
                    names[key] = self.row(*key, f"row{len(names)}", made, weight)
            left, right = names[0, a], names[1, b]
            if ONE in (left, right):
                one = right if left == ONE else left
                self.say(f"mov.f32 c{i}, {one}" if first else f"add.rn.f32 c{i}, c{i}, {one}")
            else:
                self.say(f"mul.rn.f32 c{i}, {left}, {right}" if first else f"fma.rn.f32 c{i}, {left}, {right}, c{i}")

    def add_chains(self) -> None:
        self.say(*(f"add.rn.f32 a{i}, a{i}, c{i}" for i in range(len(self.pairs))))

    def carry(self) -> None:
        for start in range(0, len(self.pairs), 4):
            group = range(start, min(start + 4, len(self.pairs)))
            place = f"[mine+{_GROUP * (start // 4)}]"
            self.say(f"ld.shared.v4.f32 {{h0, h1, h2, h3}}, {place}")
            for i in range(start, start + 4):
                c = i % 4
                if i not in group:
                    self.say(f"mov.f32 n{c}, {ZERO}")
                    continue
                self.say(f"add.rn.f32 n{c}, h{c}, a{i}", f"sub.rn.f32 h{c}, n{c}, h{c}", f"sub.rn.f32 a{i}, a{i}, h{c}")
            self.say(f"st.shared.v4.f32 {place}, {{n0, n1, n2, n3}}")

    def keep_sums(self) -> None:
        for start in range(0, self.size, 4):
            sums = ", ".join(f"a{i}" if i < self.size else ZERO for i in range(start, start + 4))
            self.say(f"st.shared.v4.f32 [mine+{_GROUP * (start // 4)}], {{{sums}}}")

    def finish(self) -> None:
        """What the part has in a row of `partial`: the sums of high and of a over the lanes, added."""
        self.say("FINISH:", "bar.warp.sync 0xffffffff")
        padded = direct_width(self.cover)
        self.say(f"mad.lo.u32 i, cta, {len(self.parts)}, part", f"mul.wide.u32 place, i, {8 * padded}")
        self.say(f"add.u64 p, place, {PARTIAL}", "mul.wide.u32 place, tid, 8", "add.u64 p, p, place")
        self.add_lanes("HIGH", "st.global.f64 [p+0], total0")
        self.say("bar.warp.sync 0xffffffff")
        self.keep_sums()
        self.say("bar.warp.sync 0xffffffff")
        self.add_lanes("LOW", "ld.global.f64 e, [p+0]", "add.rn.f64 total0, total0, e", "st.global.f64 [p+0], total0")

    def add_lanes(self, label: str, *last: str) -> None:
        """Lane i adds sum i, i + 32, …: eight of the lanes' numbers in an order that keeps the banks apart."""
        padded = direct_width(self.cover)
        self.say("mov.u32 first, 0", f"{label}:", "add.u32 f, tid, first", f"min.u32 f, f, {self.size - 1}")
        self.say("mov.u32 i, store", "shr.u32 j, f, 2", f"mad.lo.u32 i, j, {_GROUP}, i")
        self.say("and.b32 j, j, 7", "shl.b32 j, j, 4", "and.b32 f, f, 3", "mad.lo.u32 i, f, 4, i")
        for lane in range(8):
            self.say(f"xor.b32 o{lane}, j, {16 * lane}", f"add.u32 o{lane}, o{lane}, i")
        self.say(*(f"mov.f64 total{i}, 0d0000000000000000" for i in range(4)))
        for lane in range(LANES):
            self.say(f"ld.shared.f32 s, [o{lane % 8}+{128 * (lane // 8)}]", "cvt.f64.f32 e, s")
            self.say(f"add.rn.f64 total{lane % 4}, total{lane % 4}, e")
        self.say("add.rn.f64 total0, total0, total1", "add.rn.f64 total2, total2, total3")
        self.say("add.rn.f64 total0, total0, total2", *last)
        self.say(f"add.u64 p, p, {8 * LANES}", f"add.u32 first, first, {LANES}")
        self.say(f"setp.lt.u32 again, first, {padded}", f"@again bra {label}", f"sub.u64 p, p, {8 * padded}")

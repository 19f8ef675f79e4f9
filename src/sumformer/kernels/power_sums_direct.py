"""Power sums of few features as one PTX program of two warps: a register for each sum, one multiply-add for each token.

A lane takes CHAIN tokens, one after the other, makes A and B of a `Cover` and adds A_i B_j to a chain of float32 where
|β| ≤ m: CHAIN roundings, each of at most u = 2⁻²⁴ times the Σ|A B| so far. The chains of eight lanes are then added in
float32, three roundings deep, and what that gives in float64: 15 u Σ|A B| in all, and n 2⁻⁵³ of it. The tokens come
through shared memory, some chains ahead. At the end lanes and warps are added, in a fixed order: two runs agree bit for
bit. Sums that are more than a lane has registers for are dealt out in parts, each the work of programs of its own.
"""

from __future__ import annotations

from functools import cache

from sumformer.kernels.power_sums_cover import Cover, Exponents
from sumformer.kernels.power_sums_values import (
    KEEP,
    LANES,
    ONE,
    PARTIAL,
    PROGRAMS,
    WIDE_ZERO,
    ZERO,
    N,
    Values,
    X,
)

CHAIN, DEEP, WARPS = 12, 3, 2
"""Tokens of a chain; 2^DEEP lanes are added in float32; warps of a program."""
BLOCK = CHAIN * LANES
MOST = 112
"""Sums of a part."""
_GROUP, _FOUR = 32, 16  # sums that are added over the lanes at a time; bytes of four of them
_ROW = 4 * _GROUP + _FOUR  # those of a lane: eight lanes that ask for four sums each meet no bank twice


@cache
def direct(cover: Cover, chebyshev: bool, masked: bool, short: bool, aligned: bool) -> str:
    """`aligned`: every sequence begins at a multiple of 16 bytes."""
    return _Direct(cover, chebyshev, masked, short, aligned).text()


@cache
def parts(cover: Cover) -> tuple[tuple[tuple[Exponents, Exponents], ...], ...]:
    """The pairs, dealt out."""
    pairs = list(cover.pairs)
    size = -(-len(pairs) // -(-len(pairs) // MOST))
    return tuple(tuple(pairs[start : start + size]) for start in range(0, len(pairs), size))


def direct_width(cover: Cover) -> int:
    """Numbers that a part has in a row of `partial`."""
    return -(-len(parts(cover)[0]) // _GROUP) * _GROUP


def direct_places(cover: Cover) -> dict[tuple[Exponents, Exponents], int]:
    """Where in a row of `partial` the sum of each pair lies."""
    width = direct_width(cover)
    return {pair: p * width + i for p, part in enumerate(parts(cover)) for i, pair in enumerate(part)}


def direct_bytes(cover: Cover) -> int:
    """Shared memory of a program."""
    return WARPS * _warp_bytes(cover)


def _warp_bytes(cover: Cover) -> int:
    """Tokens on their way, a group of chains, and the sums in float64."""
    d = len(cover.radices)
    return _STAGES[d][0] * _stage_bytes(d) + LANES * _ROW + 32 * direct_width(cover)


_STAGES = {1: (4, 1), 2: (3, 1), 3: (2, 1), 4: (3, 2)}
"""By d: how many stages tokens wait in, and how many of them are a chain's."""


def _stage_bytes(d: int) -> int:
    return 4 * d * BLOCK // _STAGES[d][1]


class _Direct(Values):
    def __init__(self, cover: Cover, chebyshev: bool, masked: bool, short: bool, aligned: bool) -> None:
        super().__init__(cover, chebyshev, masked, short)
        self.parts, self.copied = parts(cover), 16 if aligned else 4
        self.size, self.groups = len(self.parts[0]), direct_width(cover) // _GROUP
        self.stage, (self.stages, self.steps) = _stage_bytes(self.d), _STAGES[self.d]
        self.side_by_side = 4 if self.d % 2 else 4 // self.d  # tokens of a lane that make up whole 16 bytes
        self.piece = 4 * self.d * self.side_by_side

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
            f".reg .f32 c<{self.size}>, row<{rows}>, x<{CHAIN * self.d}>, r<{4 << DEEP}>",
            ".reg .b32 tid, cta, part, which, batch, lane, mine, theirs, sums, taken, ready, end, begin",
            f".reg .b32 blocks, first, left, ahead, i, j, f, k<{CHAIN}>",
            ".reg .b64 p, q, sequence, place",
            ".reg .pred more, again, inside",
            ".reg .f64 t<4>, e<4>, total<4>",
        )

    def start(self) -> None:
        """Which part and tokens, and where the lane stands; the sums in float64 are 0."""
        self.stand(len(self.parts))
        self.say(*(["mov.u32 part, 0"] if len(self.parts) == 1 else []))
        self.say("and.b32 lane, tid, 31", "shr.u32 i, tid, 5", f"mad.lo.u32 which, which, {WARPS}, i")
        self.say("mov.u32 begin, store", f"mad.lo.u32 begin, i, {_warp_bytes(self.cover)}, begin")
        self.say(f"add.u32 mine, begin, {self.stages * self.stage}")
        self.say(f"add.u32 sums, mine, {LANES * _ROW}", f"mad.lo.u32 sums, lane, {_FOUR}, sums")
        self.say("shr.u32 i, lane, 3", "and.b32 j, lane, 7", f"mad.lo.u32 theirs, i, {8 * _ROW}, mine")
        self.say(f"mad.lo.u32 theirs, j, {_FOUR}, theirs", f"mad.lo.u32 mine, lane, {_ROW}, mine")
        self.say(f"mad.lo.u32 begin, lane, {self.piece}, begin", f"add.u32 end, begin, {self.stages * self.stage}")
        self.say(f"mov.f64 total0, {WIDE_ZERO}")
        for i in range(2 * self.groups):
            self.say(f"st.shared.v2.f64 [sums+{LANES * _FOUR * i}], {{total0, total0}}")
        self.say(f"div.u32 blocks, {N}, {BLOCK}", f"mul.lo.u32 f, {PROGRAMS}, {WARPS}")
        self.say("div.u32 i, blocks, f", "rem.u32 j, blocks, f")  # chain `first` = i · which + j · which / all warps
        self.say("mul.lo.u32 first, which, j", "div.u32 first, first, f", "mad.lo.u32 first, which, i, first")
        self.say("add.u32 left, which, 1", "mul.lo.u32 ahead, left, j", "div.u32 ahead, ahead, f")
        self.say("mad.lo.u32 left, left, i, ahead", "sub.u32 left, left, first")
        self.say(f"mul.lo.u32 i, first, {BLOCK}", f"mad.lo.u32 i, lane, {self.side_by_side}, i")
        self.say(f"mul.lo.u32 first, blocks, {BLOCK}")
        self.point()
        self.say("mov.u32 ready, begin", "mov.u32 taken, begin", f"mul.lo.u32 ahead, left, {self.steps}")

    def point(self) -> None:
        """p, q: where token i of the sequence begins, and its mark."""
        self.say("cvt.u64.u32 place, i", "add.u64 place, place, sequence", f"add.u64 q, place, {KEEP}")
        self.say(f"mad.lo.u64 p, place, {4 * self.d}, {X}")

    def copy(self) -> None:
        """The tokens of the next stage set out for shared memory, if there is one; a group of copies in any case."""
        self.say("setp.ne.u32 more, ahead, 0")
        kind = "cg" if self.copied == 16 else "ca"
        for row in range(0, self.stage, LANES * self.piece):
            for at in range(row, row + self.piece, self.copied):
                self.say(f"@more cp.async.{kind}.shared.global [ready+{at}], [p+{at}], {self.copied}")
        self.say("cp.async.commit_group", f"add.u64 p, p, {self.stage}", "@more sub.u32 ahead, ahead, 1")
        self.say(*self.around("ready"))

    def around(self, place: str) -> tuple[str, ...]:
        return (
            f"add.u32 {place}, {place}, {self.stage}",
            f"setp.eq.u32 again, {place}, end",
            f"selp.u32 {place}, begin, {place}, again",
        )

    def marks(self) -> None:
        if self.masked:
            for slot in range(CHAIN):
                row, token = divmod(slot, self.side_by_side)
                self.say(f"@more ld.global.nc.u8 k{slot}, [q+{LANES * self.side_by_side * row + token}]")
            self.say(f"add.u64 q, q, {BLOCK}")

    def coordinates(self, slot: int) -> list[str]:
        return [f"x{slot * self.d + c}" for c in range(self.d)]

    def chains(self, name: str) -> None:
        for _ in range(self.stages - 1):
            self.copy()
        self.say("setp.ne.u32 more, left, 0")
        self.marks()
        self.say(f"@!more bra REST{name}", f"CHAIN{name}:")
        for step in range(self.steps):
            self.say(f"cp.async.wait_group {self.stages - 2}")
            slots = range(CHAIN // self.steps * step, CHAIN // self.steps * (step + 1))
            for i in range(0, self.d * len(slots), 4):
                row, at = divmod(4 * i, self.piece)
                names = ", ".join(f"x{self.d * slots[0] + i + j}" for j in range(4))
                self.say(f"ld.shared.v4.f32 {{{names}}}, [taken+{LANES * self.piece * row + at}]")
            for slot in slots:
                self.say(f"setp.ne.u32 shown, {f'k{slot}' if self.masked else 1}, 0")
                self.token(slot, weighted=self.masked, first=slot == 0)
            self.copy()
            self.say(*self.around("taken"))
        self.say("sub.u32 left, left, 1", "setp.ne.u32 more, left, 0")
        self.marks()
        self.add_chains()
        self.say(f"@more bra CHAIN{name}")

    def remainder(self, name: str) -> None:
        """What is left of the sequence, one token of a lane at a time; `first` is the same for all of them."""
        self.say(f"REST{name}:", f"mad.lo.u32 first, which, {LANES}, first")
        self.say(f"STEP{name}:", f"setp.ge.u32 again, first, {N}", "@again bra FINISH")
        self.say("add.u32 i, first, lane", f"setp.lt.u32 inside, i, {N}")
        self.point()
        self.say(*(f"mov.f32 {x}, {ZERO}" for x in self.coordinates(0)), "selp.u32 k0, 1, 0, inside")
        self.fetch(self.coordinates(0), "p", 0, "@inside ")
        self.say(*(["@inside ld.global.nc.u8 k0, [q+0]"] if self.masked else []), "setp.ne.u32 shown, k0, 0")
        self.token(0, weighted=True, first=True)
        self.add_chains()
        self.say(f"mul.lo.u32 i, {PROGRAMS}, {WARPS * LANES}", "add.u32 first, first, i", f"bra STEP{name}")

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
        """Each lane leaves its chains, and adds four of each group over eight lanes."""
        for group in range(self.groups):
            for i in range(_GROUP * group, min(_GROUP * (group + 1), self.size), 4):
                four = ", ".join(f"c{j}" if j < len(self.pairs) else ZERO for j in range(i, i + 4))
                self.say(f"st.shared.v4.f32 [mine+{4 * (i % _GROUP)}], {{{four}}}")
            self.say("bar.warp.sync 0xffffffff")
            lanes = 1 << DEEP
            for i in range(lanes):
                four = ", ".join(f"r{4 * i + j}" for j in range(4))
                self.say(f"ld.shared.v4.f32 {{{four}}}, [theirs+{_ROW * i}]")
            self.say("bar.warp.sync 0xffffffff")
            while lanes > 1:
                lanes //= 2
                self.say(*(f"add.rn.f32 r{i}, r{i}, r{4 * lanes + i}" for i in range(4 * lanes)))
            for half in (0, 1):
                at = f"[sums+{LANES * _FOUR * (2 * group + half)}]"
                pair = [2 * half, 2 * half + 1]
                self.say(f"ld.shared.v2.f64 {{t{pair[0]}, t{pair[1]}}}, {at}")
                self.say(*(f"cvt.f64.f32 e{i}, r{i}" for i in pair), *(f"add.rn.f64 t{i}, t{i}, e{i}" for i in pair))
                self.say(f"st.shared.v2.f64 {at}, {{t{pair[0]}, t{pair[1]}}}")

    def finish(self) -> None:
        """What the part has in a row of `partial`: thread i adds sum i, i + 64, … of all warps and groups of lanes."""
        width, threads = direct_width(self.cover), WARPS * LANES
        self.say("FINISH:", "bar.sync 0", f"mad.lo.u32 i, cta, {len(self.parts)}, part")
        self.say(f"mul.wide.u32 place, i, {8 * width}", f"add.u64 p, place, {PARTIAL}")
        self.say("mul.wide.u32 place, tid, 8", "add.u64 p, p, place", "mov.u32 f, tid")
        self.say("ADD:", f"setp.lt.u32 inside, f, {width}", f"min.u32 i, f, {width - 1}")
        self.say("mov.u32 sums, store", f"add.u32 sums, sums, {_warp_bytes(self.cover) - 32 * width}")
        self.say("shr.u32 j, i, 5", f"mad.lo.u32 sums, j, {2 * LANES * _FOUR}, sums")
        self.say("and.b32 j, i, 31", "shr.u32 j, j, 2", f"mad.lo.u32 sums, j, {_FOUR}, sums")
        self.say("and.b32 j, i, 3", "shr.u32 taken, j, 1", f"mad.lo.u32 sums, taken, {LANES * _FOUR}, sums")
        self.say("and.b32 j, j, 1", "mad.lo.u32 sums, j, 8, sums")
        self.say(*(f"mov.f64 total{i}, {WIDE_ZERO}" for i in range(4)))
        for warp in range(WARPS):
            for group in range(LANES >> DEEP):
                at = warp * _warp_bytes(self.cover) + (_FOUR << DEEP) * group
                self.say(f"ld.shared.f64 e0, [sums+{at}]", f"add.rn.f64 total{group}, total{group}, e0")
        self.say("add.rn.f64 total0, total0, total1", "add.rn.f64 total2, total2, total3")
        self.say("add.rn.f64 total0, total0, total2", "@inside st.global.f64 [p+0], total0")
        self.say(f"add.u64 p, p, {8 * threads}", f"add.u32 f, f, {threads}", "sub.u32 j, f, tid")
        self.say(f"setp.lt.u32 again, j, {width}", "@again bra ADD")

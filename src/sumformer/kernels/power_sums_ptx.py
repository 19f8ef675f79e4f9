"""A tile of power sums as one PTX program: tokens in, two float64 for each feature, turn and program out.

A thread keeps two chains a, b of float32 for each feature in registers, and high in shared memory. PERIOD tokens are
added to the chains in turn, b starting anew; then high takes them over,
    s = fl(a + b), high' = fl(high + s), a' = fl(s − fl(high' − high)).
Where the plan lets a feature rest, it has the chain a alone, taken over after so many periods. At the end the threads
of a program are added, high and a apart. No atomics: two runs agree bit for bit. It is text because the registers
should hold the chains and little else, and because compiling it then takes a second.
"""

from __future__ import annotations

from functools import cache

from sumformer.kernels.power_sums_plan import FEATURE, FMS, FMS_TWO, MULTIPLY, Tile

THREADS = 64
PERIOD = 28
"""Tokens of a thread between two carries."""
PLACES = "=r,l,l,l,r,r,r,r,r,f,f"
_X, _KEEP, _PARTIAL, _N, _PROGRAMS, _SHARE, _FIRST_ROW, _LENGTH, _CENTRE, _INVERSE = (f"${i}" for i in range(1, 11))
_GROUP = 16 * THREADS  # bytes of four features in shared memory
_ONE, _ZERO, _MINUS_TWO = "0f3F800000", "0f00000000", "0fC0000000"


@cache
def program(tile: Tile, d: int, turns: int, affine: int, masked: bool) -> str:
    """`turns` rotations of the coordinates, by d / turns each, side by side; of three, one for each program_id(1).

    t = x, or x·inverse − centre (`affine` = 1), or (x − centre)·inverse (2); 0 where `masked` tokens are hidden.
    """
    return _Program(tile, d, turns, affine, masked).text()


class _Program:
    def __init__(self, tile: Tile, d: int, turns: int, affine: int, masked: bool) -> None:
        self.tile, self.d, self.affine, self.masked = tile, d, affine, masked
        self.size = len(tile.features)
        by_slot = sorted(range(self.size), key=tile.slots.__getitem__)
        # features of one place in shared memory, four and four
        self.members = [(*by_slot[g : g + 4], *[None] * (g + 4 - self.size)) for g in range(0, self.size, 4)]
        self.side = 1 if turns == 3 else turns
        self.turns, self.step, self.tokens = turns, d // turns, THREADS // self.side
        # of a period: `head` tokens, then `body` tokens again and again; `ring` tokens are under way
        self.ring, self.head, self.body = (14, 14, 14) if self.size <= 32 else (4, 4, 24 if self.size <= 64 else 8)
        self.lines: list[str] = []

    def text(self) -> str:
        self.registers()
        self.start()
        self.periods()
        self.remainder()
        self.finish()
        return "{ " + " ".join(self.lines) + " }"

    def say(self, *lines: str) -> None:
        self.lines += [line if line.endswith(":") else line + ";" for line in lines]

    def registers(self) -> None:
        most = self.d + sum(op[0] != FEATURE for op in self.tile.code)
        self.say(
            f".shared .align 16 .b8 store[{_GROUP * len(self.members)}]",
            f".reg .f32 a<{self.size}>, b<{self.size}>, v<{most}>, w<{most}>, x<{self.ring * self.d}>",
            ".reg .f32 h<4>, n<4>, s, minus, shift, weight",
            ".reg .b32 tid, cta, program, batch, turn, token, mine, blocks, first, last, left, stop, periods, i, j, f",
            f".reg .b32 o<8>, k<{self.ring}>",
            f".reg .b64 p<{self.d}>, q, sequence, at, row",
            ".reg .pred more, again, inside",
            ".reg .f64 total<4>, e",
        )

    def start(self) -> None:
        """Where the thread stands; high = a = 0."""
        self.say("mov.u32 $0, 0", "mov.u32 tid, %tid.x", "mov.u32 cta, %ctaid.x", f"neg.f32 shift, {_CENTRE}")
        self.say(f"rem.u32 program, cta, {_PROGRAMS}", f"div.u32 batch, cta, {_PROGRAMS}")
        self.say(f"mul.wide.u32 sequence, batch, {_N}", "mov.u32 mine, store", "mad.lo.u32 mine, tid, 16, mine")
        self.say(f"and.b32 token, tid, {self.tokens - 1}", f"shr.u32 turn, tid, {self.tokens.bit_length() - 1}")
        if self.turns == 3:
            self.say("mov.u32 turn, %ctaid.y")
        self.say(*(f"mov.f32 a{f}, {_ZERO}" for f in range(self.size)))
        self.say("mov.u32 periods, 0")
        self.keep_chains()
        block = PERIOD * self.tokens
        self.say(f"div.u32 blocks, {_N}, {block}", f"mul.lo.u32 first, program, {_SHARE}")
        self.say("min.u32 first, first, blocks", f"add.u32 last, first, {_SHARE}", "min.u32 last, last, blocks")
        self.say("sub.u32 left, last, first", f"mul.lo.u32 left, left, {(PERIOD - self.head) // self.body}")
        self.say(f"mad.lo.u32 i, first, {block}, token", f"mul.lo.u32 first, blocks, {block}")
        self.point()

    def point(self) -> None:
        """p, q: where token i of the sequence begins; p of each part of the coordinates that is turned as a whole."""
        self.say("cvt.u64.u32 at, i", "add.u64 at, at, sequence", f"add.u64 q, at, {_KEEP}")
        self.say(f"mad.lo.u64 row, at, {4 * self.d}, {_X}")
        for c in range(0, self.d, self.step):
            self.say(f"mad.lo.u32 j, turn, {self.step}, {c}", f"rem.u32 j, j, {self.d}", "mul.wide.u32 at, j, 4")
            self.say(f"add.u64 p{c}, row, at")

    def load(self, slot: int, ahead: int, condition: str = "") -> None:
        """The coordinates, and the mark, of the token `ahead` tokens of the thread behind p and q."""
        away = 4 * self.d * self.tokens * ahead
        for c in range(0, self.d, self.step):
            names = [f"x{slot * self.d + c + i}" for i in range(self.step)]
            if self.step in (2, 4):
                self.say(f"{condition}ld.global.nc.v{self.step}.f32 {{{', '.join(names)}}}, [p{c}+{away}]")
            else:
                self.say(*(f"{condition}ld.global.nc.f32 {x}, [p{c}+{away + 4 * i}]" for i, x in enumerate(names)))
        if self.masked:
            self.say(f"{condition}ld.global.nc.u8 k{slot}, [q+{self.tokens * ahead}]")

    def advance(self, count: int) -> None:
        for c in range(0, self.d, self.step):
            self.say(f"add.u64 p{c}, p{c}, {4 * self.d * self.tokens * count}")
        if self.masked:
            self.say(f"add.u64 q, q, {self.tokens * count}")

    def periods(self) -> None:
        self.say("setp.eq.u32 again, left, 0", "@again bra REST")
        for s in range(self.ring):
            self.load(s, s)
        self.say("PERIOD:", f"sub.u32 stop, left, {(PERIOD - self.head) // self.body}")
        for s in range(self.head):
            self.token(s % self.ring, "ab"[s % 2], begins=s == 1)
            self.load(s % self.ring, s + self.ring)
        self.advance(self.head)
        self.say("BODY:", "sub.u32 left, left, 1", "setp.ne.u32 more, left, 0")
        for s in range(self.body):
            self.token(s % self.ring, "ab"[s % 2])
            self.load(s % self.ring, s + self.ring, "@more " if s + self.ring >= self.body else "")
        self.advance(self.body)
        self.say("setp.ne.u32 again, left, stop", "@again bra BODY")
        self.carry({0, 1})
        self.say("add.u32 periods, periods, 1")
        for rest in sorted(set(self.tile.rest) - {0, 1}):
            self.say(f"and.b32 i, periods, {rest - 1}", "setp.ne.u32 again, i, 0", "@again bra CARRIED")
            self.carry({rest})
        self.say("CARRIED:", "setp.ne.u32 more, left, 0", "@more bra PERIOD")

    def remainder(self) -> None:
        """What is left of the sequence, one token of a thread at a time; `first` is the same for all of them."""
        self.say("REST:", f"mad.lo.u32 first, program, {self.tokens}, first")
        self.say("STEP:", f"setp.ge.u32 again, first, {_N}", "@again bra FINISH")
        self.say("add.u32 i, first, token", f"setp.lt.u32 inside, i, {_N}")
        self.point()
        self.say(*(f"mov.f32 x{c}, {_ZERO}" for c in range(self.d)), "mov.u32 k0, 0")
        self.load(0, 0, "@inside ")
        self.token(0, "a", last=True)
        self.carry(set(self.tile.rest), last=True)
        self.say(f"mad.lo.u32 first, {_PROGRAMS}, {self.tokens}, first", "bra STEP")

    def token(self, slot: int, chain: str, begins: bool = False, last: bool = False) -> None:
        """+ v_j v_i for each feature, or + (weight · v_j) v_i where a hidden token's features would not be 0."""
        names = [f"x{slot * self.d + c}" for c in range(self.d)]
        if self.affine:
            self.say(*(self.mapped(f"v{c}", x) for c, x in enumerate(names)))
            names = [f"v{c}" for c in range(self.d)]
        if self.masked:
            self.say(f"setp.ne.u32 inside, k{slot}, 0")
            self.say(*(f"selp.f32 v{c}, {x}, {_ZERO}, inside" for c, x in enumerate(names)))
            names = [f"v{c}" for c in range(self.d)]
        weighted = self.affine and (self.masked or last)
        if weighted:
            self.say(f"selp.f32 weight, {_ONE}, {_ZERO}, inside")
        factors: dict[int, str] = {}
        feature = 0
        for kind, i, j, k in self.tile.code:
            if kind == FEATURE:
                one, other = (j, i) if j >= 0 else (i, -1)
                if one not in factors:
                    factors[one] = f"w{one}" if weighted else names[one]
                    self.say(*([f"mul.rn.f32 w{one}, {names[one]}, weight"] if weighted else []))
                two = self.tile.rest[feature] == 0
                name = f"{chain if two else 'a'}{feature}"
                self.say(_added(name, factors[one], names[other] if other >= 0 else None, two and begins))
                feature += 1
                continue
            name = f"v{len(names)}"
            if kind == MULTIPLY:
                self.say(f"mul.rn.f32 {name}, {names[i]}, {names[j]}")
            elif kind == FMS:
                self.say(f"neg.f32 minus, {names[k]}", f"fma.rn.f32 {name}, {names[i]}, {names[j]}, minus")
            elif kind == FMS_TWO:
                self.say(f"fma.rn.f32 {name}, {names[i]}, {names[j]}, {_MINUS_TWO}")
            names.append(name)

    def mapped(self, t: str, x: str) -> str:
        if self.affine == 1:
            return f"fma.rn.f32 {t}, {x}, {_INVERSE}, shift"
        return f"sub.rn.f32 {t}, {x}, {_CENTRE}; mul.rn.f32 {t}, {t}, {_INVERSE}"

    def carry(self, rests: set[int], last: bool = False) -> None:
        """high takes over what it can of a, or of a + b, for the features of such rests; there is no b at `last`."""
        for g, members in enumerate(self.members):
            if not any(f is not None and self.tile.rest[f] in rests for f in members):
                continue
            self.say(f"ld.shared.v4.f32 {{h0, h1, h2, h3}}, [mine+{g * _GROUP}]")
            for c, f in enumerate(members):
                if f is None or self.tile.rest[f] not in rests:
                    self.say(f"mov.f32 n{c}, h{c}")
                    continue
                two = self.tile.rest[f] == 0 and not last
                self.say(f"add.rn.f32 s, a{f}, b{f}" if two else f"mov.f32 s, a{f}", f"add.rn.f32 n{c}, h{c}, s")
                self.say(f"sub.rn.f32 h{c}, n{c}, h{c}", f"sub.rn.f32 a{f}, s, h{c}")
            self.say(f"st.shared.v4.f32 [mine+{g * _GROUP}], {{n0, n1, n2, n3}}")

    def keep_chains(self) -> None:
        self.say(f"mov.f32 s, {_ZERO}")
        for g, members in enumerate(self.members):
            chains = ", ".join("s" if f is None else f"a{f}" for f in members)
            self.say(f"st.shared.v4.f32 [mine+{g * _GROUP}], {{{chains}}}")

    def finish(self) -> None:
        """Two columns of `partial`: the sums of high, then those of a."""
        self.say("FINISH:", "bar.sync 0")
        self.add_threads("HIGH", 0)
        self.say("bar.sync 0")
        self.keep_chains()
        self.say("bar.sync 0")
        self.add_threads("LOW", 1)

    def add_threads(self, label: str, column: int) -> None:
        """Thread i adds feature i mod size of turn i div size; eight lanes in an order that keeps the banks apart."""
        jobs = self.size * self.side
        self.say("mov.u32 first, 0", f"{label}:", "add.u32 i, tid, first", f"setp.lt.u32 inside, i, {jobs}")
        self.say(f"min.u32 i, i, {jobs - 1}", f"div.u32 turn, i, {self.size}", f"rem.u32 f, i, {self.size}")
        self.say("mov.u32 i, store", f"mad.lo.u32 i, turn, {16 * self.tokens}, i", "shr.u32 j, f, 2")
        self.say(f"mad.lo.u32 i, j, {_GROUP}, i", "and.b32 j, j, 7", "shl.b32 j, j, 4", "and.b32 last, f, 3")
        self.say("mad.lo.u32 i, last, 4, i")
        for lane in range(8):
            self.say(
                f"xor.b32 o{lane}, j, {16 * lane}",
                f"add.u32 o{lane}, o{lane}, i",
                f"mov.f64 total{lane % 4}, 0d0000000000000000",
            )
        lanes = min(32, self.tokens)
        self.say(f"mov.u32 left, {self.tokens // lanes}", f"{label}_LANES:")
        for lane in range(lanes):
            self.say(f"ld.shared.f32 s, [o{lane % 8}+{128 * (lane // 8)}]", "cvt.f64.f32 e, s")
            self.say(f"add.rn.f64 total{lane % 4}, total{lane % 4}, e")
        self.say(*(f"add.u32 o{lane}, o{lane}, {16 * lanes}" for lane in range(8)), "sub.u32 left, left, 1")
        self.say("setp.ne.u32 again, left, 0", f"@again bra {label}_LANES")
        self.say(
            "add.rn.f64 total0, total0, total1",
            "add.rn.f64 total2, total2, total3",
            "add.rn.f64 total0, total0, total2",
        )
        if self.turns == 3:
            self.say("mov.u32 turn, %ctaid.y")
        self.say(
            f"mad.lo.u32 i, turn, {self.size}, f", f"add.u32 i, i, {_FIRST_ROW}", f"mul.wide.u32 row, i, {_LENGTH}"
        )
        self.say("mul.wide.u32 at, cta, 2", "add.u64 row, row, at", f"mad.lo.u64 row, row, 8, {_PARTIAL}")
        self.say(f"@inside st.global.f64 [row+{8 * column}], total0", f"add.u32 first, first, {THREADS}")
        self.say(f"setp.lt.u32 again, first, {jobs}", f"@again bra {label}")


def _added(chain: str, a: str, b: str | None, new: bool) -> str:
    if new:
        return f"mov.f32 {chain}, {a}" if b is None else f"mul.rn.f32 {chain}, {a}, {b}"
    return f"add.rn.f32 {chain}, {chain}, {a}" if b is None else f"fma.rn.f32 {chain}, {a}, {b}, {chain}"

"""A square or a product by saw networks: t² = S²P² + 2 lo S P + lo²,  a·b = A B (p² − q²) + linear.

P = (t − lo)/S, or P = 1/2 + (a − a_0)/4A ± (b − b_0)/4B = (p + 1)/2, (q + 1)/2. The recorded ranges give lo, S, a_0, A,
b_0, B; the identities hold for any of them, and `saw.py` bounds what the units make of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.compiled.ledger import Entry, Functional, Gadget
from sumformer.certificates.checker.compiled.rules import Rules
from sumformer.certificates.checker.compiled.saw import Branch
from sumformer.certificates.checker.compiled.stream import TINY, UP
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Power, Token

SQUARE: Node = Power(Token("x", 1), 2)


class SawRules(Rules):
    """The rules with those of the saws."""

    def start(self, gadget: Gadget, entries: tuple[Entry, ...]) -> list[Branch]:
        """The branches of a square or a product, ready for their first stage, with what their arguments err by."""
        (name,) = gadget.values
        value = self.stream.values[name]
        c, W = self.stream.destination(name)
        if any(entry.first == entry.end for entry in entries):
            raise Unproved("a saw without units")
        if value.op == "product" and gadget.kind == "product" and len(entries) == 2:
            f, g = value.of
            ea, eb = self.error_of(f), self.error_of(g)
            (al, ah), (bl, bh) = self.stream.span(f), self.stream.span(g)
            error = max(abs(al), abs(ah)) * eb + max(abs(bl), abs(bh)) * ea + ea * eb
            (a0, A), (b0, B) = ((_middle(r), _radius(r)) for r in gadget.ranges)
            scales = [(f, 1 / (4 * A), a0, ea, 1), (g, 1 / (4 * B), b0, eb, 1)]
            slopes = (b0 * A + a0 * B, b0 * A - a0 * B)
            plan = [(4 * A * B, -4 * A * B + 2 * slopes[0], 1), (-4 * A * B, 4 * A * B + 2 * slopes[1], -1)]
            constant, half = a0 * b0 - slopes[0] - slopes[1], Fraction(1, 2)
        elif value.op == "function" and value.expression == SQUARE and gadget.kind == "square" and len(entries) == 1:
            (f,) = value.of
            e = self.error_of(f)
            low, high = self.stream.span(f)
            error = 2 * max(abs(low), abs(high)) * e + e * e
            (lo, hi) = (Fraction(end) for end in gadget.ranges[0])
            S = hi - lo
            if S <= 0:
                raise Unproved("a square on an empty range")
            scales, half = [(f, 1 / S, lo, e, 1)], Fraction(0)
            plan, constant = [(S * S, 2 * lo * S, 1)], lo * lo
        else:
            raise Unproved("a saw network that is neither a product nor a square")
        added = sum((Fraction(e.constants.get(c, 0.0)) for e in entries), Fraction(0))
        branches = []
        for entry, (q, linear, sign) in zip(entries, plan, strict=True):
            branches.append(
                self._branch(entry, float(Fraction(W) * q), float(Fraction(W) * linear), scales, half, sign)
            )
        shift = float(added - Fraction(W) * constant)
        branches[0].low_error += shift - 1e-15 * abs(shift)
        branches[0].high_error += shift + 1e-15 * abs(shift)
        branches[0].moved = branches[0].moved + abs(W) * (error + TINY) * UP
        return branches

    def _branch(
        self,
        entry: Entry,
        q: float,
        linear: float,
        scales: list[tuple[Functional, Fraction, Fraction, Floats, int]],
        half: Fraction,
        sign: int,
    ) -> Branch:
        """P̂ = ⟨row, ẑ⟩ + b_1 against P = Σ ± (t − t_0)·scale + half, and where it lies."""
        layer = self.layer
        a, b = np.searchsorted(layer.rows_1, [entry.first, entry.first + 1])
        row = dict(zip(layer.columns_1[a:b].tolist(), layer.values_1[a:b].tolist(), strict=True))
        names, _ = self.read(row)
        wanted: dict[str, Fraction] = {}
        offset, low, high = half, float(half), float(half)
        for i, (f, scale, middle, e, _) in enumerate(scales):
            factor = scale * (sign if i else 1)
            for n, w in f.terms:
                wanted[n] = wanted.get(n, Fraction(0)) + factor * Fraction(w)
            offset += factor * (Fraction(f.offset) - middle)
            t_low, t_high = self.stream.span(f)
            e_t = Fraction(float(e[1]))
            ends = [float(factor * (t - middle)) for t in (Fraction(t_low) - e_t, Fraction(t_high) + e_t)]
            low, high = low + min(ends), high + max(ends)
        drift = abs(Fraction(float(layer.b_1[entry.first])) - offset)
        for n in wanted.keys() | names.keys():
            drift += abs(wanted.get(n, Fraction(0)) - Fraction(names.get(n, 0.0))) * Fraction(self.size_of(n))
        d = float(drift) * UP + TINY
        slack = 1e-15 * (1 + abs(low) + abs(high)) + d
        reach = max(abs(low - slack), abs(high + slack))
        branch = Branch(q, linear, low - slack, high + slack)
        branch.moved = np.array(
            [0.0, (2 * abs(q) * reach + abs(linear)) * d + 4e-16 * reach * (abs(q) * reach + abs(linear))]
        )
        return branch

    def stage(self, gadget: Gadget, entries: tuple[Entry, ...], branches: list[Branch], last: bool) -> None:
        (name,) = gadget.values
        c, W = self.stream.destination(name)
        for entry, branch in zip(entries, branches, strict=True):
            first, key = branch.first, (name, id(branch))
            units = self.units(entry)
            spaces = set(units.writes) - {c}
            if len(spaces) > 1 or c not in units.writes or not len(units.bias):
                raise Unproved("a saw writes elsewhere than to its value and one workspace")
            if not first and (units.row != {branch.workspace: 1.0} or self.slots[branch.workspace].owner != key):
                raise Unproved("a saw does not read its workspace")
            if (not last or not first) and not spaces:
                raise Unproved("a saw has no workspace for its next stage, or does not clear it")
            space = spaces.pop() if spaces else -1
            if first and space >= 0 and not self.stream.slots[space].free:
                raise Unproved(f"coordinate {space} is not free for a saw")
            if not first and space != branch.workspace:
                raise Unproved("a saw changes its workspace")
            if first and last and space >= 0:
                raise Unproved("a saw of one stage writes to a workspace")
            if not first and units.constants.get(c, 0.0):
                raise Unproved("a later stage of a saw adds a constant to its value")
            if not set(units.constants) <= {c, space} or (self.layer.b_2[space] and space >= 0 and not last):
                raise Unproved("a saw adds a constant elsewhere than to its value")
            shift, constant = float(units.bias[0]) if first else 0.0, units.constants.get(space, 0.0)
            size, left = branch.stage(-units.bias, shift, units.writes[c], units.writes.get(space), last, constant)
            self.write(c, {}, np.zeros(2), size)
            self.at(c).begun.add(name)
            if space >= 0:
                added = self.overwrite(space)
                branch.workspace = space
                if last:
                    added.error = added.error + np.array([0.0, left])
                else:
                    before = self.stream.slots[space].error if first else np.zeros(2)
                    branch.disturbed(before + np.array([0.0, float(self.rounding[space])]))
                    added.owner, added.size = key, max(abs(branch.low), abs(branch.high))
        if last:
            low, high = (sum(getattr(b, side) for b in branches) for side in ("low_error", "high_error"))
            moved = sum((b.moved for b in branches), np.zeros(2))
            self.write(c, {name: W}, (moved + max(abs(low), abs(high))) * UP, 0.0)
            self.at(c).ended.add(name)


def _middle(r: tuple[float, float]) -> Fraction:
    return (Fraction(r[0]) + Fraction(r[1])) / 2


def _radius(r: tuple[float, float]) -> Fraction:
    if not r[1] > r[0]:
        raise Unproved("a product on an empty range")
    return (Fraction(r[1]) - Fraction(r[0])) / 2

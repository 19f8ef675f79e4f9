"""‖z‖ = √Σ z_c² off the cut and |z| = ±z off the imaginary axis: what both programs enclose, and where they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import ComplexIntervalOperations
from sumformer.certificates.checker.interval import Interval as Checked
from sumformer.certificates.checker.rectangle import RectangleOperations, rectangle

COUNT = 4000


def rectangles(seed: int) -> tuple[np.ndarray, ...]:
    """re.lo, re.hi, im.lo, im.hi of (COUNT, 2) rectangles, many of them thin, some real in one coordinate."""
    rng = np.random.default_rng(seed)
    re, im = rng.uniform(-1, 2, (2, COUNT, 2))
    wide, high = rng.uniform(0, 1, (2, COUNT, 2)) ** 4
    still = rng.random((COUNT, 2)) < 0.3
    im, high = np.where(still, 0.0, im * rng.uniform(0, 1, (COUNT, 2))), np.where(still, 0.0, high)
    return re, re + wide, im, im + high


def points(ends: tuple[np.ndarray, ...], seed: int) -> np.ndarray:
    s, t = np.random.default_rng(seed).uniform(0, 1, (2, COUNT, 2))
    return ends[0] + s * (ends[1] - ends[0]) + 1j * (ends[2] + t * (ends[3] - ends[2]))


def constructors(ends: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    z = ComplexInterval(Interval(ends[0], ends[1]), Interval(ends[2], ends[3]))
    ops = ComplexIntervalOperations()
    found = [ops.norm(z), ops.unary("abs", z[..., :1]), ops.norm(z[..., :1])]
    return [(v.defined[:, 0], v.re.lo[:, 0], v.re.hi[:, 0], v.im.lo[:, 0], v.im.hi[:, 0]) for v in found]


def checkers(ends: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    parts = [rectangle(Checked(ends[0][:, c], ends[1][:, c]), Checked(ends[2][:, c], ends[3][:, c])) for c in (0, 1)]
    out = []
    for way in ("norm", "abs", "one"):
        ops = RectangleOperations(COUNT)
        with np.errstate(all="ignore"):
            v = (
                ops.norm(parts)
                if way == "norm"
                else ops.function("abs", parts[0])
                if way == "abs"
                else ops.norm(parts[:1])
            )
        out.append((~ops.bad, v.re.lo, v.re.hi, v.im.lo, v.im.hi))
    return out


@pytest.mark.parametrize("program", [constructors, checkers])
def test_they_hold_the_continuation(program) -> None:
    ends = rectangles(0)
    for which, (known, *box) in enumerate(program(ends)):
        assert 0.2 < known.mean() < 1
        for seed in range(20):
            z = points(ends, seed + 1)
            wanted = np.sqrt((z**2).sum(-1)) if which == 0 else z[:, 0] * np.sign(z[:, 0].real)
            slack = 1e-12 * (1 + np.abs(z).sum(-1))  # numpy's own rounding
            inside = (wanted.real >= box[0] - slack) & (wanted.real <= box[1] + slack)
            inside &= (wanted.imag >= box[2] - slack) & (wanted.imag <= box[3] + slack)
            assert inside[known].all()


@pytest.mark.parametrize("program", [constructors, checkers])
def test_they_know_where_it_ends(program) -> None:
    """A rectangle that is not real and holds a zero of Σ z², or of z, or has points on both sides, is refused."""
    ends = rectangles(2)
    real = (ends[2] == 0).all(-1) & (ends[3] == 0).all(-1)
    both = (ends[0][:, 0] <= 0) & (ends[1][:, 0] >= 0)
    alone = (ends[2][:, 0] == 0) & (ends[3][:, 0] == 0)
    holds_zero = both & (ends[2][:, 0] <= 0) & (ends[3][:, 0] >= 0) & (ends[0][:, 1] <= 0) & (ends[1][:, 1] >= 0)
    holds_zero &= (ends[2][:, 1] <= 0) & (ends[3][:, 1] >= 0)
    norm, absolute, one = (known for known, *_ in program(ends))
    assert holds_zero.any()
    assert not norm[holds_zero & ~real].any()
    assert not absolute[both & ~alone].any()
    assert not one[both & ~alone].any()

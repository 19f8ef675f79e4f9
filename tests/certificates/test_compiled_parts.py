"""The parts of the check of a `CompiledTransformer`: forms over atoms, gaps of linear pieces, saws, the stream."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import fmpq

import sumformer
from sumformer.certificates.checker.compiled.element import between
from sumformer.certificates.checker.compiled.files import read_compiled
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.head import read_head
from sumformer.certificates.checker.compiled.jets import jet
from sumformer.certificates.checker.compiled.ledger import Layer
from sumformer.certificates.checker.compiled.piecewise import gap, peak, pieces
from sumformer.certificates.checker.compiled.saw import Branch
from sumformer.certificates.checker.compiled.stream import Slot, Stream
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets import parse


def test_forms_know_their_rules():
    forms = Forms(1)
    u = forms.chebyshev((1,))
    a, b = forms.add(u, forms.const(3.0)), forms.named("b", between(1.0, 2.0))
    D = forms.add(a, b)
    ratio = forms.function("exp", forms.sub(forms.function("log", D), forms.function("log", a)))
    other = forms.div(D, a)
    assert forms.atoms.distance(ratio.terms, other.terms) + ratio.error + other.error < 1e-12
    one = forms.mul(D, forms.inverse(D))
    assert one.terms == {forms.atoms.one: fmpq(1)}
    square = forms.power(u, 2)
    assert square.terms == {((0,), (), 0): fmpq(1, 2), ((2,), (), 0): fmpq(1, 2)}
    both = forms.function("abs", u)
    pair = forms.extremum("max", u, forms.neg(u))
    assert forms.atoms.distance(both.terms, pair.terms) == 0
    left = forms.mul(forms.function("exp", u), forms.function("exp", forms.neg(u)))
    assert left.terms == {forms.atoms.one: fmpq(1)}


def test_near_arguments_are_paid_for():
    forms = Forms(1)
    u = forms.chebyshev((1,))
    first = forms.function("sin", u)
    second = forms.function("sin", forms.scaled(u, Fraction(1) + Fraction(1, 2**30)))
    assert second.terms == first.terms
    assert 2**-31 < second.error < 2**-29


def test_a_mean_of_what_others_do_is_refused():
    forms = Forms(1)
    with pytest.raises(Unproved, match="other tokens"):
        forms.mean(forms.mean(forms.chebyshev((2,))))


@pytest.mark.parametrize("source", ["exp(x)", "1/(2 + x)", "tanh(3*x)", "x**3 - x", "max(x, 0)", "sqrt(x + 1.5)"])
def test_the_gap_encloses_what_is_sampled(source: str):
    g, generator = parse(source, 1), np.random.default_rng(1)
    knots = np.sort(np.concatenate([[-1.0, 0.0], generator.uniform(-1, 1, 9)]))
    weights = generator.normal(size=len(knots))
    p = pieces(knots, weights, -0.9, 0.8)
    ends = Interval(p.ends, p.ends)
    low, high = gap(p, jet(g, ends).value, jet(g, Interval(p.ends[:-1], p.ends[1:])))
    t = np.linspace(-0.9, 0.8, 20_001)
    values = np.maximum(t[:, None] - knots, 0.0) @ weights - jet(g, Interval(t, t)).value.lo
    assert low <= values.min() + 1e-12
    assert values.max() - 1e-12 <= high
    assert max(-low, high) <= 1.2 * np.abs(values).max() + 0.1


def test_peak_is_the_maximum_of_the_parabola():
    a, b, B = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([0.1, 0.5, 2.0])
    tau = np.linspace(0, 1, 100_001)[:, None]
    dense = ((1 - tau) * a + tau * b + 4 * B * tau * (1 - tau)).max(0)
    assert np.allclose(peak(a, b, B), dense, atol=1e-8)


@pytest.mark.parametrize(("M", "stages"), [(2, 4), (4, 2), (3, 1)])
def test_saw_stages_bound_the_square(M: int, stages: int):
    """The chords and saws of P², stage by stage: error in [0, M^{−2L}/4], and no more is found."""
    knots = np.arange(M) / M
    chords = np.full(M, 2.0 / M)
    chords[0] = 1.0 / M
    wave = 2.0 * M * np.where(np.arange(M) % 2, -1.0, 1.0)
    wave[0] = M
    branch = Branch(1.0, 0.0, 0.0, 1.0)
    for k in range(stages):
        last = k == stages - 1
        scale, G, S = float(M) ** (-2 * k), chords.copy(), wave.copy()
        if k:
            G[0] -= 1.0
            S[0] -= 1.0
        saws = None if last and not k else (np.eye(1, M)[0] * -1.0 if last else S)
        _, left = branch.stage(knots, 0.0, scale * G, saws, last, 0.0)
        assert left <= 1e-14
    true = float(M) ** (-2 * stages) / 4
    assert abs(branch.low_error) <= 1e-14
    assert true <= branch.high_error <= true * (1 + 1e-9) + 1e-14
    worse = Branch(1.0, 0.0, 0.0, 1.0)
    worse.stage(knots, 0.0, chords + np.eye(1, M)[0] * 0.01, None, True, 0.0)
    assert worse.high_error > 0.0099


def test_a_mixture_that_overflows_is_no_head(tmp_path: Path) -> None:
    """E X is multiplied by W_K = 0, which is 0 for numbers only."""
    sumformer.construct("mean(y)", 0.1, n=3, architecture="linformer").save(tmp_path)
    net = read_compiled(tmp_path)
    (name,) = (name for name in net.tensors if name.endswith(".E"))
    net.tensors[name][:] = 1e99
    stream = object.__new__(Stream)
    stream.net, stream.head = net, read_head(net, sumformer.target("mean(y)", n=3).tokens)
    stream.slots = [Slot(size=1e250) for _ in range(net.width)]
    with pytest.raises(Unproved, match="may overflow"):
        stream.with_attention()


def test_hidden_units_that_underflow_meet_large_weights() -> None:
    """1e300·R(1e-310·t) has ten digits: 1e-310 is known to 2^-1074."""
    one = np.zeros(1, dtype=np.int64)
    layer = Layer(one, one, np.array([1e-310]), np.zeros(1), one, one, np.array([1e300]), np.zeros(1))
    stream = object.__new__(Stream)
    stream.slots = [Slot(size=1.0)]
    t = 1 / 3
    exact = Fraction(1e-310) * Fraction(t) * Fraction(1e300)
    assert abs(Fraction(1e300 * (1e-310 * t)) - exact) <= Fraction(float(stream.rounding(layer, stream.slots)[0]))

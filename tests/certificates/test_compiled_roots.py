"""√ of what may reach 0 in a compiled network: built, proved with a rule of its own, and no forgery of it passes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from flint import fmpq
from tampered import Tampered

from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.element import between
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.piecewise import pieces, shifted
from sumformer.certificates.checker.compiled.root_modulus import root_moves
from sumformer.certificates.checker.compiled.root_rule import gap
from sumformer.theorems.construction import construct

TARGETS = [
    ("norm(x - mean(y))", 1),
    ("norm(x - mean(y))", 2),
    ("sqrt(mean((y - mean(y))**2))", 2),
    ("exp(-sqrt(mean((y - mean(y))**2)))", 1),
    ("mean(sqrt(y)*y)*sqrt(x)", 1),
    ("x - 3*norm(x - mean(y))", 2),
    ("sqrt(max(x - mean(y), 0))", 1),
]


@pytest.mark.parametrize("epsilon", [1e-1, 1e-2])
@pytest.mark.parametrize(("source", "d"), TARGETS)
def test_roots_that_reach_0_compile_and_are_proved(tmp_path, source, d, epsilon):
    made = construct(source, epsilon, n=5, d=d, architecture="transformer")
    made.save(tmp_path / "made")
    found = check(tmp_path / "made")
    assert found.verified, found.failures
    assert found.bound <= made.certificate.total <= epsilon
    assert attack(made.target, made.network, effort="quick", seconds=0.3).worst <= found.bound


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roots") / "norm"
    construct("norm(x - mean(y))", 1e-2, n=3, d=2, architecture="transformer").save(folder)
    return folder


def placed(folder):
    ledger = json.loads((folder / "config.json").read_text())["ledger"]
    i = next(i for i, g in enumerate(ledger["gadgets"]) if g["kind"] == "root")
    return i, ledger["gadgets"][i]["stages"][0][0]


def moved_bias(entry, unit, by):
    name = f"blocks.{entry['block']}.feed_forward.b_1"
    return lambda t: t[name].__setitem__(entry["units"][0] + unit, t[name][entry["units"][0] + unit] + by)


@pytest.mark.parametrize("unit", [0, 1, -1])
def test_a_knot_elsewhere(original, tmp_path, unit):
    _, entry = placed(original)
    unit = unit if unit >= 0 else entry["units"][1] - entry["units"][0] - 1
    saved = Tampered(original, tmp_path / "copy")
    found = check(saved.weights(moved_bias(entry, unit, 0.05)).folder)
    assert not found.verified
    assert found.bound > 1e-2


def test_a_unit_that_is_silent(original, tmp_path):
    """Fewer units than the root needs: the first one's weights of W_2 are 0."""
    _, entry = placed(original)
    prefix = f"blocks.{entry['block']}.feed_forward."

    def silence(t):
        mine = t[prefix + "place_2"][1] == entry["units"][0]
        t[prefix + "value_2"][mine] = 0.0

    assert not check(Tampered(original, tmp_path / "copy").weights(silence).folder).verified


@pytest.mark.parametrize("kind", ["function", "square", "identity"])
def test_a_root_under_another_name(original, tmp_path, kind):
    """The rule for functions multiplies errors by a slope, which has no bound at 0."""
    i, _ = placed(original)
    saved = Tampered(original, tmp_path / "copy")
    saved.edit("config", lambda data: data["ledger"]["gadgets"][i].update(kind=kind))
    assert not check(saved.folder).verified


@pytest.mark.parametrize("expression", ["sqrt(x)", "sqrt(max(x, 0.001))", "sqrt(abs(x))", "max(x, 0)"])
def test_a_root_of_something_else(original, tmp_path, expression):
    def change(data):
        for v in data["ledger"]["values"]:
            if v.get("expression") == "sqrt(max(x, 0))":
                v["expression"] = expression

    assert not check(Tampered(original, tmp_path / "copy").edit("config", change).folder).verified


def test_a_function_under_the_name_of_a_root(tmp_path):
    made = construct("exp(x)*mean(y)", 1e-2, n=2, architecture="transformer", options={"prefer": "depth"})
    made.save(tmp_path / "made")
    assert check(tmp_path / "made").verified

    def change(data):
        for g in data["ledger"]["gadgets"]:
            g["kind"] = "root" if g["kind"] == "function" and len(g["values"]) == 1 else g["kind"]

    found = check(Tampered(tmp_path / "made", tmp_path / "copy").edit("config", change).folder)
    assert not found.verified
    assert "sqrt(max(x, 0))" in " ".join(found.failures)


@pytest.mark.parametrize("weight", [1.0, -0.7, 3.0])
def test_the_gap_of_random_pieces(weight):
    """Any units at all: F − w√max(t, 0) lies where the rule says, and, of a good fit, not far within."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        offset, low, high = rng.normal(), rng.choice([-0.3, 0.0, 0.2]), rng.choice([0.5, 4.0])
        knots = rng.uniform(low - 0.1, high, 7) - offset
        writes = rng.normal(size=7)
        p = pieces(np.append(knots, -offset), np.append(writes, 0.0), low - offset, high - offset)
        below, above = gap(p, shifted(p.ends, offset), weight)
        t = np.concatenate([np.linspace(low, high, 4001), np.geomspace(1e-12, high, 500)])
        t = t[(t >= low) & (t <= high)]
        values = np.maximum((t - offset)[:, None] - knots, 0) @ writes - weight * np.sqrt(np.maximum(t, 0))
        assert below <= values.min() + 1e-9
        assert values.max() <= above + 1e-9
        assert above - below <= 2 * np.ptp(values) + 1e-9


def test_errors_under_a_root():
    assert root_moves(0.0, np.array([0.0, 1e-8])) == pytest.approx([0.0, 1e-4])
    assert root_moves(4.0, np.array([1e-8])) == pytest.approx([0.25e-8])
    assert np.isnan(root_moves(1.0, np.array([np.nan])))
    forms = Forms(1)
    u = forms.chebyshev((1,))
    known = forms.root(forms.add(u, forms.const(1)))
    near = forms.add(forms.scaled(u, 1 + 2.0**-40), forms.const(1))
    other = forms.root(near)
    assert other.terms == known.terms
    assert 2.0**-20 <= other.error <= 1.01 * 2.0**-20
    assert forms.root(forms.const(-2)).terms == {}
    assert forms.root(forms.const(4)).terms == {forms.atoms.one: fmpq(2)}
    assert float(forms.root(forms.named("a", between(-1.0, 9.0))).range.hi) == pytest.approx(3.0)


@pytest.mark.parametrize("source", ["max(x - 2, 0)**2", "sqrt(max(x - 2, 0))**2 + x", "x*sqrt(max(x - 2, 0))"])
def test_what_is_0_on_the_whole_box(tmp_path, source):
    construct(source, 1e-2, n=3, architecture="transformer").save(tmp_path / "made")
    found = check(tmp_path / "made")
    assert found.verified, found.failures


def test_how_far_a_root_rises_is_not_lost_to_underflow():
    """F = 2⁸³ t against 2⁻³³² √t on [0, 2⁻⁸³⁰]: equal at both ends, 2⁻⁷⁴⁹ apart between."""
    p = pieces(np.array([0.0, 0.0]), np.array([2.0**83, 0.0]), 0.0, 2.0**-830)
    below, above = gap(p, shifted(p.ends, 0.0), 2.0**-332)
    assert below <= -(2.0**-749)
    assert above < 2.0**-760


def test_the_root_of_0_is_0():
    forms = Forms(1)
    assert forms.root(forms.const(0)).error == 0.0

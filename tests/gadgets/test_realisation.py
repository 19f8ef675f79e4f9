"""Deep or shallow: the smaller one is chosen, by counting modules; gadgets compose and their bounds with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from sumformer.errors import InputError, RefusedError
from sumformer.gadgets import function
from sumformer.gadgets.compose import beside, then
from sumformer.gadgets.elementary import ELEMENTARY, EXP, elementary
from sumformer.gadgets.product import product
from sumformer.gadgets.quotient import quotient
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.realisation import least, realise
from sumformer.gadgets.residual import ResidualGadget
from sumformer.gadgets.saw import PREFERENCES
from sumformer.gadgets.units import Size

A, B = Reading({"a": 1.0}), Reading({"b": 1.0})
RANGES = {"exp": (-1.0, 2.0), "log": (0.5, 2.0), "tanh": (-3.0, 3.0), "reciprocal": (0.5, 2.0), "sqrt": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def counted(gadget) -> Size:
    """Layers, widest hidden layer and non-zero entries of the module."""
    layers = ResidualGadget(gadget, ["a"], "out").layers
    nonzero = sum(int((p != 0).sum()) for layer in layers for p in layer.parameters())
    return Size(len(layers), max(layer[0].out_features for layer in layers), nonzero)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("name", list(RANGES))
def test_the_smaller_realisation_is_chosen(name, tolerance):
    lo, hi = RANGES[name]
    for prefer, at in zip(PREFERENCES, (0, 1, 2), strict=True):
        chosen = counted(elementary(name, A.within(lo, hi), "out", tolerance, prefer))
        shallow = counted(elementary(name, A.within(lo, hi), "out", tolerance, prefer, "shallow"))
        sizes = [shallow]
        if name != "sqrt":  # the root at 0 has no deep realisation: the chooser falls back
            sizes.append(counted(elementary(name, A.within(lo, hi), "out", tolerance, prefer, "deep")))
        assert chosen[at] == min(size[at] for size in sizes)
        assert shallow.layers == 1
        assert least(ELEMENTARY[name], A.within(lo, hi), tolerance).nonzero <= shallow.nonzero


def test_both_realisations_win_somewhere():
    kinds = {
        (prefer, tolerance): elementary("exp", A.within(-1.0, 2.0), "out", tolerance, prefer).kind
        for prefer in PREFERENCES
        for tolerance in (1e-2, 1e-6)
    }
    assert {kinds["depth", 1e-2], kinds["depth", 1e-6], kinds["parameters", 1e-2]} == {"function"}
    assert {kinds["width", 1e-6], kinds["parameters", 1e-6]} == {"polynomial"}


def test_where_one_is_refused_the_other_is_taken(monkeypatch):
    assert elementary("sqrt", A.within(0.0, 1.0), "out", 1e-3, "parameters").depth == 1
    monkeypatch.setattr(function, "MAX_KNOTS", 100)
    too_many_units = elementary("exp", A.within(-1.0, 2.0), "out", 1e-8, "depth")
    assert too_many_units.kind == "polynomial"
    assert too_many_units.error <= 1e-8
    with pytest.raises(RefusedError, match="neither") as refused:
        elementary("exp", A.within(-1.0, 2.0), "out", 1e-17, "parameters")
    assert len(refused.value.reasons) == 2


def test_what_is_not_known_is_said():
    with pytest.raises(InputError, match="prefer"):
        elementary("exp", A.within(-1.0, 2.0), "out", 1e-2, "speed")
    with pytest.raises(InputError, match="realisation"):
        elementary("exp", A.within(-1.0, 2.0), "out", 1e-2, "depth", "flat")
    with pytest.raises(InputError, match="one of exp"):
        elementary("gamma", A.within(1.0, 2.0), "out", 1e-2)


def test_the_default_is_the_one_hidden_layer_of_before():
    found = elementary("tanh", A.within(-3.0, 3.0), "out", 1e-4)
    assert found.kind == "function"
    assert found.depth == 1


def pairs(a_range, b_range, count=3000):
    unit = torch.rand(count, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit[:4] = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    low, high = (torch.tensor([r[i] for r in (a_range, b_range)], dtype=torch.float64) for i in (0, 1))
    return low + (high - low) * unit


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_exp_of_a_product(tolerance, prefer):
    inner = product(A.within(-1.0, 1.0), B.within(0.0, 2.0), "p", tolerance / 16, prefer)
    e = inner.error
    outer = realise(EXP, Reading({"p": 1.0}, 0.0, -2 - e, 2 + e), "out", tolerance / 2, prefer)
    gadget = then(inner, outer, ("p",), slope=7.4 * (1 + e) ** 2)
    x = pairs((-1.0, 1.0), (0.0, 2.0))
    worst = (ResidualGadget(gadget, ["a", "b"], "out")(x) - (x[:, 0] * x[:, 1]).exp()).abs().max()
    assert worst <= gadget.error <= tolerance
    assert gadget.depth == inner.depth + outer.depth


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_quotients_of_either_kind(prefer):
    gadget = quotient(A, B.within(0.25, 2.0), (-1.0, 2.0), "out", 1e-4, prefer)
    b = torch.linspace(0.25, 2.0, 100, dtype=torch.float64).repeat_interleave(20)
    q = torch.linspace(-1, 2, 20, dtype=torch.float64).repeat(100)
    worst = (ResidualGadget(gadget, ["a", "b"], "out")(torch.stack([q * b, b], -1)) - q).abs().max()
    assert worst <= gadget.error <= 1e-4
    assert (gadget.depth == 2) == (prefer == "depth")


def test_a_deep_quotient_of_several_places_needs_their_size():
    both, b = A + Reading({"c": 1.0}), B.within(0.25, 2.0)
    gadget = quotient(replace(both, size=6.0), b, (-1.0, 2.0), "out", 1e-4, "width")
    x = pairs((-0.25, 0.25), (0.25, 2.0))
    c = 2 * x[:, 1] - x[:, 0]  # a + c = 2b
    worst = (ResidualGadget(gadget, ["a", "b", "c"], "out")(torch.column_stack([x, c])) - 2.0).abs().max()
    assert worst <= gadget.error <= 1e-4
    with pytest.raises(InputError, match="a reading with a size"):
        quotient(both, b, (-1.0, 2.0), "out", 1e-4, "width")


@pytest.mark.parametrize("tolerance", [1e-9, 1e-8, 1.0, 40.0])
def test_quotients_keep_to_their_tolerance(tolerance):
    """Whatever it is: fine ones leave no room for a fixed slack, wide ones none for e^{2δ} − 1 ≈ 2δ."""
    assert quotient(A, B.within(0.25, 2.0), (-1.0, 2.0), "out", tolerance, "width").error <= tolerance


def test_quotients_beyond_float64_are_refused():
    with pytest.raises(RefusedError) as refused:
        quotient(A, B.within(0.25, 2.0), (-1.0, 2.0), "out", 1e-14, "width")
    assert refused.value.reachable is not None
    assert refused.value.reachable > 1e-14


def test_fewer_weights_in_a_deep_quotient():
    sizes = {prefer: quotient(A, B.within(0.5, 2.0), (-1.0, 2.0), "out", 1e-6, prefer).size for prefer in PREFERENCES}
    assert sizes["parameters"].nonzero < sizes["depth"].nonzero / 4
    assert sizes["width"].width < sizes["parameters"].width <= sizes["depth"].width


def test_beside_each_other():
    both = beside(
        elementary("exp", A.within(-1.0, 1.0), "e", 1e-3),
        elementary("tanh", A.within(-1.0, 1.0), "out", 1e-6, "parameters", "deep"),
    )
    t = torch.linspace(-1, 1, 1001, dtype=torch.float64)
    for place, wanted, error in (("e", t.exp(), both.errors[0]), ("out", t.tanh(), both.errors[1])):
        rest = tuple(name for name in ("e", "out") if name != place)
        gadget = type(both)(both.kind, both.stages, both.error, (*rest, *both.workspace))
        assert (ResidualGadget(gadget, ["a"], place)(t[:, None]) - wanted).abs().max() <= error


def test_places_are_not_shared():
    one = elementary("exp", A.within(-1.0, 1.0), "out", 1e-3)
    with pytest.raises(InputError, match="out twice"):
        beside(one, one)
    with pytest.raises(InputError, match="out twice"):
        then(one, one, ("out",), 1.0)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_curvature_without_a_bound_is_a_size_too():
    assert least(ELEMENTARY["log"], replace(A, lo=1e-308, hi=1.0), 1e-290).width >= 2**53

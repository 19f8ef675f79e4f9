"""check of a `CompiledTransformer`: honest files verify; a changed weight, field or claim does not, or does no harm."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flint import fmpq
from safetensors.numpy import load_file
from tampered import Change, Tampered, put

from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.forms import Forms, between
from sumformer.certificates.checker.compiled.jets import jet
from sumformer.certificates.checker.compiled.piecewise import gap, peak, pieces
from sumformer.certificates.checker.compiled.saw import Branch
from sumformer.certificates.checker.interval import Interval
from sumformer.errors import FileFormatError
from sumformer.targets import parse
from sumformer.theorems.construction import construct, load

GAUSS = "sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))"
SHARP = "sum(exp(-6*(x - y)**2)*y)/sum(exp(-6*(x - y)**2))"
SAMPLES: dict[str, tuple[str, float, dict[str, Any]]] = {
    "linear": ("x - mean(y)", 1e-1, {"n": "any", "d": 2, "architecture": "transformer"}),
    "gauss": (GAUSS, 1e-1, {"n": 3, "d": 1, "architecture": "transformer"}),
    "others": ("x*mean_others(exp(x*y/3)) + x/3", 1e-2, {"n": 3, "box": "-0.1:0.8", "architecture": "linformer"}),
    "sharp": (SHARP, 1e-1, {"n": 3, "d": 1, "architecture": "performer"}),
    "free": (GAUSS, 1e-1, {"n": "any", "d": 1, "architecture": "performer", "options": {"prefer": "depth"}}),
    "score": (
        "(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)",
        1e-1,
        {"n": 4, "d": 1, "architecture": "linformer", "options": {"k": 2, "prefer": "width"}},
    ),
    "polynomial": (
        "x*dot(x, sum_others(y)) - 0.5*sum_others(y)**2",
        1e-2,
        {"n": 3, "d": 2, "architecture": "transformer", "options": {"prefer": "depth"}},
    ),
    "kinks": ("max(x, 1.1*mean(y)) + abs(x - 0.7)", 1e-2, {"n": 2, "box": "-1:1", "architecture": "performer"}),
    "powers": (GAUSS, 1e-1, {"n": 3, "d": 1, "route": "symmetric", "architecture": "transformer"}),
}
SMALL = ("gauss", "others", "score")
_BUILT: dict[str, Path] = {}
Copy = Callable[[str], Tampered]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    def get(name: str) -> Path:
        if name not in _BUILT:
            source, epsilon, options = SAMPLES[name]
            _BUILT[name] = tmp_path_factory.mktemp(name)
            construct(source, epsilon, **options).save(_BUILT[name])
        return _BUILT[name]

    return get


@pytest.fixture
def copy(samples: Callable[[str], Path], tmp_path: Path) -> Copy:
    return lambda name: Tampered(samples(name), tmp_path / name)


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(samples: Callable[[str], Path], name: str):
    found = check(samples(name))
    assert found.verified, found.failures
    assert 0 < found.bound <= found.claimed <= found.epsilon
    assert math.isclose(sum(part for _, part in found.terms), found.bound, rel_tol=1e-12)


@pytest.mark.parametrize("name", ["gauss", "others", "polynomial"])
def test_the_bound_holds_where_it_is_sampled(samples: Callable[[str], Path], name: str):
    made, found = load(samples(name)), check(samples(name))
    assert _worst(made, made.network) <= found.bound


def _worst(made: Any, network: Any) -> float:
    """max |f − N| over random tokens and corners of the box."""
    f, generator = made.target, torch.Generator().manual_seed(0)
    unit = torch.rand(400, f.tokens.minimum, f.d, dtype=torch.float64, generator=generator)
    unit = torch.cat([unit, unit.round()])
    low = torch.tensor([float(a) for a in f.box.lower], dtype=torch.float64)
    X = low + torch.tensor([float(2 * r) for r in f.box.radius], dtype=torch.float64) * unit
    with torch.no_grad():
        return float((network(X) - f(X)).abs().nan_to_num(nan=math.inf).max())


# ---- weights


def _accepted(folder: Path) -> bool:
    try:
        return check(folder).verified
    except FileFormatError:
        return False


def _perturb_and_check(original: Tampered, seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    made = load(original.folder)
    tensors = {k: v.numpy().copy() for k, v in made.network.state_dict().items()}
    keys = generator.permutation([k for k in tensors if tensors[k].size and "place" not in k]).tolist()
    rejected = 0
    for i in range(count):
        key = keys[i % len(keys)]
        place = tuple(generator.integers(0, s) for s in tensors[key].shape)
        old = tensors[key][place]
        new = old + (1 + abs(old)) * (0.5, -0.03, 1e-3)[i % 3]
        original.weights(lambda data, key=key, place=place, new=new: data[key].__setitem__(place, new))
        if _accepted(original.folder):
            assert _worst(made, load(original.folder).network) <= made.certificate.total, (key, place)
        else:
            rejected += 1
        original.weights(lambda data, key=key, place=place, old=old: data[key].__setitem__(place, old))
    assert rejected >= count // 2
    assert _accepted(original.folder)


@pytest.mark.parametrize("name", SMALL)
def test_a_weight_that_is_changed_is_found_or_does_no_harm(copy: Copy, name: str):
    """Entries of every kind of tensor, a little or a lot: what is still verified is still true."""
    _perturb_and_check(copy(name), 0, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_many_weights_changed_one_by_one(copy: Copy, name: str):
    _perturb_and_check(copy(name), 1, 60)


MATTER = [
    ("gauss", "read_in.weight", (1, 0), 1e-2),
    ("gauss", "read_in.weight", (2, 0), 1e-9),
    ("gauss", "read_in.bias", (0,), 1e-9),
    ("gauss", "read_in.bias", (1,), 1e-1),
    ("gauss", "read_in.bias", (4,), 1e-9),
    ("gauss", "read_out.weight", (0, 0), 1e-9),
    ("gauss", "ideal.coefficients.0", (0, 0), 1e-3),
    ("gauss", "attention.W_Q.weight", (0, 1), 1e-9),
    ("gauss", "attention.W_K.weight", (1, 0), 1e-9),
    ("gauss", "attention.W_V.weight", (0, 0), 1e-9),
    ("gauss", "attention.W_O.weight", (0, 0), 1e-9),
    ("others", "attention.F", (0, 1), 1e-1),
    ("sharp", "attention.W_V.weight", "first", 1e-1),
]


@pytest.mark.parametrize(("name", "key", "place", "by"), MATTER)
def test_these_weights_matter(copy: Copy, name: str, key: str, place: Any, by: float):
    def change(data: dict[str, np.ndarray]) -> None:
        found = next(k for k in data if k.endswith(key))
        where = tuple(np.argwhere(data[found])[0]) if place == "first" else place
        data[found][where] += by

    assert not _accepted(copy(name).weights(change).folder)


@pytest.mark.parametrize("name", ["gauss", "score"])
def test_b_2_beside_the_ledger_is_an_error(copy: Copy, name: str):
    """A constant on any coordinate of any block moves what stands there."""

    def change(data: dict[str, np.ndarray]) -> None:
        data["blocks.0.feed_forward.b_2"][0] = 1e-6

    assert not _accepted(copy(name).weights(change).folder)


def test_entries_must_be_in_order_and_inside(copy: Copy):
    for value in (-1, 10**6):
        tampered = copy("gauss").weights(lambda d, v=value: d["blocks.0.feed_forward.place_1"].__setitem__((1, 0), v))
        with pytest.raises(FileFormatError):
            check(tampered.folder)


def test_an_unknown_tensor_fails(copy: Copy):
    found = check(copy("gauss").weights(lambda d: d.__setitem__("extra", np.zeros(2))).folder)
    assert not found.verified
    assert "unknown tensor" in " ".join(found.failures)


# ---- the ledger and the certificate


def _of(kind: str, then: Callable[[Any], None]) -> Change:
    """On the first gadget of this kind."""
    return lambda data: then(next(g for g in data["ledger"]["gadgets"] if g["kind"] == kind))


def _value(op: str, then: Callable[[Any], None]) -> Change:
    return lambda data: then(next(v for v in data["ledger"]["values"] if v["op"] == op))


def _bump(*path: Any, by: float = 1.0) -> Callable[[Any], None]:
    return put(*path)(lambda old: old + by)


CONFIG: dict[str, Change] = {
    "centre": put("ledger", "centre", 0)("1/3"),
    "radius": put("ledger", "radius", 0)("1/3"),
    "tokens": put("ledger", "tokens")(7),
    "outputs weight": put("ledger", "outputs", 0, "weights", 0)(lambda w: w + 1e-9),
    "outputs offset": put("ledger", "outputs", 0, "offset")(lambda w: w + 1e-9),
    "outputs of": put("ledger", "outputs", 0, "of")(["u0#0"]),
    "attention block": put("ledger", "attention", "block")(lambda k: k - 1),
    "attention from": put("ledger", "attention", "from", 0)(lambda c: c + 1),
    "attention to": put("ledger", "attention", "to", 0)(lambda c: c + 1),
    "attention means": put("ledger", "attention", "means")(lambda m: m[::-1]),
    "expression": _value("function", put("expression")(lambda e: f"1.001*({e})")),
    "function of": _value("function", _bump("of", "weights", 0, by=1e-6)),
    "product of": _value("product", _bump("of", 0, "weights", 0, by=1e-6)),
    "product offset": _value("product", _bump("of", 1, "offset", by=1e-3)),
    "sum weight": _value("sum", _bump("of", "weights", 0, by=0.1)),
    "sum offset": _value("sum", _bump("of", "offset", by=0.1)),
    "input": _value("input", put("at")(2)),
    "product at": _value("product", put("at")(lambda c: c + 1 if c >= 0 else 1)),
    "function from": _value("function", _bump("from")),
    "mean of": _value("mean", put("of")("u0#0")),
    "name": _value("mean", put("name")("u0#0")),
    "op": _value("product", put("op")("sum")),
    "kind": _of("product", put("kind")("square")),
    "clear": _of("clear", put("kind")("identity")),
    "gadget values": _of("function", put("values", 0)("u0#0")),
    "product range": _of("product", _bump("ranges", 0, 1)),
    "units": _of("function", put("stages", 0, 0, "units", 1)(lambda k: k - 1)),
    "block": _of("function", _bump("stages", 0, 0, "block")),
    "writes": _of("function", put("stages", 0, 0, "writes")({"5": "u0#0"})),
    "constants": _of("function", put("stages", 0, 0, "constants")({})),
    "gadget left out": put("ledger", "gadgets")(lambda g: g[1:]),
    "gadget twice": put("ledger", "gadgets")(lambda g: [*g, g[0]]),
    "ideal": put("ideal", "expression")("mean(y)"),
    "ideal own": put("ideal", "reductions", 0, "components", 0, 0, "polynomial", 0, 1)("1/3"),
    "block type": put("blocks", "modules", 0, "type")("SubLayers"),
    "dropout": put("blocks", "modules", 0, "dropout")(0.5),
    "second attention": put("blocks", "modules", 0, "attention")({"type": "Identity"}),
    "normaliser": lambda d: d["blocks"]["modules"][d["ledger"]["attention"]["block"]]["attention"].update(
        normaliser={"type": "Hardmax"}
    ),
    "arithmetic": put("arithmetic")("float32"),
}
CERTIFICATE: dict[str, Change] = {
    "target": put("target")("mean(y)"),
    "box": put("box")("0:2"),
    "route": put("route")("symmetric"),
    "architecture": put("architecture")("linformer"),
    "norm": put("norm")("d_2"),
    "epsilon": put("epsilon")(1e-6),
    "latent": put("latent_dimension")(1),
    "total": put("total")(lambda t: t / 2),
    "term": lambda d: [t.update(bound=t["bound"] / 4) for t in d["terms"]] and d.update(total=d["total"] / 4),
    "term kind": put("terms", 0, "kind")("assumed"),
    "assumptions": put("assumptions")([]),
    "blocks": put("constants", "blocks")(1),
    "rho": put("constants", "ideal", "kernels", 0, "ellipses", 0, "rho")(1.01),
    "no ideal": lambda d: d["constants"].pop("ideal"),
}


@pytest.mark.parametrize("what", CONFIG)
def test_a_changed_configuration_fails(copy: Copy, what: str):
    assert not _accepted(copy("gauss").edit("config", CONFIG[what]).folder)


@pytest.mark.parametrize("what", CERTIFICATE)
def test_a_changed_certificate_fails(copy: Copy, what: str):
    assert not _accepted(copy("gauss").edit("certificate", CERTIFICATE[what]).folder)


def test_weights_that_know_n_are_for_that_n(copy: Copy):
    assert not _accepted(copy("others").edit("certificate", put("tokens")("4")).folder)
    assert _accepted(copy("gauss").edit("certificate", put("tokens")("4")).folder)  # means and ratios: free of n


def test_hashes_count(copy: Copy):
    folder = copy("gauss").folder
    path = folder / "config.json"
    path.write_text(path.read_text() + " ")
    assert any("hash" in failure for failure in check(folder).failures)


def test_the_network_of_another_target_is_not_taken_for_this_one(samples: Callable[[str], Path], tmp_path: Path):
    """Certificate and Sumformer of f, everything else of a near-by g: the programs differ."""
    construct(GAUSS.replace("-(x", "-1.2*(x"), 1e-1, n=3, architecture="transformer").save(tmp_path / "f")
    own, strange = tmp_path / "f", samples("gauss")
    forged = Tampered(strange, tmp_path / "forged")
    mine = json.loads((own / "config.json").read_text())["ideal"]
    forged.weights(
        lambda d: d.update({k: v for k, v in load_file(own / "model.safetensors").items() if k.startswith("ideal")})
    )
    (forged.folder / "certificate.json").write_text((own / "certificate.json").read_text())
    there = len(json.loads((strange / "config.json").read_text())["blocks"]["modules"])
    forged.edit("config", lambda d: d.update(ideal=mine)).edit("certificate", put("constants", "blocks")(there))
    found = check(forged.folder)
    assert not found.verified
    assert found.bound > found.epsilon


# ---- the parts


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
    from sumformer.certificates.checker.verification import Unproved

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

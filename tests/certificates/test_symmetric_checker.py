"""check of a `SymmetricSumformer`: honest files verify; a changed field, weight or claim does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from tampered import Change, Copy, Sample, Samples, put

from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check
from sumformer.certificates.checker.symmetric.dropped import interpolant
from sumformer.certificates.checker.symmetric.expansion import expand
from sumformer.certificates.checker.symmetric.files import read_polynomial
from sumformer.certificates.checker.symmetric.node_values import node_values, types
from sumformer.certificates.checker.symmetric.orbits import apply, members, rank
from sumformer.certificates.checker.symmetric.remainder import TokenEllipse
from sumformer.certificates.checker.verification import Unproved
from sumformer.errors import FileFormatError
from sumformer.targets import target
from sumformer.theorems.construction import load

GAUSS = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
OPTIONS = {"route": "symmetric"}
SAMPLES: dict[str, Sample] = {
    "gauss": (GAUSS, 1e-3, {"n": 3, "d": 1}),
    "pair": (GAUSS, 1e-2, {"n": 2, "d": 1, "dtype": "mixed"}),
    "log": ("log(1 + sum(norm2(x - y)))", 1e-1, {"n": 4, "d": 1, "dtype": "float32"}),
    "product": ("exp(sum_others(log(1 + dot(x, y)))/4)", 1e-3, {"n": 3, "d": 1}),
    "wave": ("sin(x + sum(y))", 1e-2, {"n": 3, "d": 1}),
    "nested": ("sum_others(exp(-norm2(y - mean(y))))", 1e-1, {"n": 4, "d": 1}),
    "alone": ("exp(mean(y))*x", 1e-2, {"n": 1, "d": 1, "dtype": "float32"}),
    "plane": ("sin(x[0] + total(mean(y)))*x", 1e-1, {"n": 3, "d": 2}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(samples: Samples, name: str):
    found = check(samples(name))
    assert found.verified, found.failures
    assert found.bound <= found.claimed <= found.epsilon
    assert next(term for term, _ in found.terms) == "interpolation remainder"


@pytest.mark.parametrize("name", ["log", "plane", "product"])
def test_every_coefficient_matters(copy: Copy, name: str):
    """A change of any coefficient by as much as ε is seen, and named."""
    saved = copy(name)
    terms = len(read_polynomial(saved.folder).terms)
    for t in np.linspace(0, terms - 1, 3).astype(int):

        def change(tensors: dict[str, np.ndarray], t: int = int(t)) -> None:
            tensors["coefficients"][t] += SAMPLES[name][1]

        found = check(saved.weights(change).folder)
        assert not found.verified
        assert any("dropped and rounded coefficients" in f for f in found.failures), found.failures


CERTIFICATE: list[tuple[str, Change]] = [
    ("target", put("target")(lambda s: s.replace("sum", "1.01*sum"))),
    ("box", put("box")("0:1.1")),
    ("tokens", put("tokens")("4")),
    ("tokens", put("tokens")("..3")),
    ("arithmetic", put("arithmetic")("float32")),
    ("route", put("route")("sums")),
    ("architecture", put("architecture")("transformer")),
    ("norm", put("norm")("d_2")),
    ("latent_dimension", put("latent_dimension")(lambda k: k + 1)),
    ("epsilon", put("epsilon")(lambda e: e / 2)),
    ("total", put("total")(lambda t: t / 2)),
    ("assumptions", put("assumptions")([])),
    ("terms", put("terms", 0, "kind")("enclosed")),
    ("terms", put("terms", 0, "name")("remainder")),
    ("terms", put("terms")(lambda terms: terms[:2])),
    ("own_degrees", put("constants", "own_degrees", 0)(lambda N: N - 1)),
    ("other_degrees", put("constants", "other_degrees", 0)(lambda N: N - 1)),
    ("rho", put("constants", "ellipses", 0, "rho")(lambda r: r * 1.1)),
    ("rho", put("constants", "ellipses", 1, "rho")(40.0)),
    ("maximum", put("constants", "ellipses", 0, "maximum")(lambda m: m / 2)),
    ("maximum", put("constants", "ellipses", 1, "maximum")(lambda m: m * 1.1)),
    ("remainder", put("constants", "remainder")(lambda r: r / 2)),
    ("orbits", put("constants", "orbits")(lambda k: k + 1)),
    ("kept", put("constants", "kept")(lambda k: k + 1)),
    ("terms", put("constants", "terms")(lambda k: k + 1)),
    ("grid", put("constants", "grid", "others")(4)),
    ("grid", put("constants", "grid")(None)),
    ("tau", put("constants", "grid", "tau")("99/100")),
    ("dropped", put("constants", "dropped")(lambda b: b / 2)),
    ("coefficients", put("constants", "coefficients")(1e-4)),
    ("unknown", lambda data: data["constants"].update(more=1)),
]


@pytest.mark.parametrize(("field", "change"), CERTIFICATE, ids=lambda v: v if isinstance(v, str) else "")
def test_changed_certificates_fail(copy: Copy, field: str, change: Change):
    found = check(copy("wave").edit("certificate", change).folder)
    assert not found.verified
    assert found.failures


def test_terms_that_take_from_each_other_fail(copy: Copy):
    """The sum is the same; a term is less than what is found, and is named."""

    def change(data: dict[str, Any]) -> None:
        part = 0.3 * data["terms"][0]["bound"]
        data["terms"][0]["bound"] -= part
        data["terms"][2]["bound"] += part

    failures = check(copy("wave").edit("certificate", change).folder).failures
    assert any("interpolation remainder" in f for f in failures)
    assert any("'rounding'" in f for f in failures)


CONFIG: list[tuple[str, Change]] = [
    ("centre", put("centre", 0)("1/3")),
    ("radius", put("radius", 0)("1/3")),
    ("tokens", put("tokens")(4)),
    ("width", put("width")(2)),
    ("own", put("own", 1, 0)(lambda k: k + 1)),
    ("features", put("features", 0, 0)(9)),
    ("products", put("products", 0, 1)(1)),
    ("terms", put("terms", 0, 0)(1)),
    ("terms", put("terms", 2, 1)(0)),
]


@pytest.mark.parametrize(("field", "change"), CONFIG, ids=lambda v: v if isinstance(v, str) else "")
def test_changed_networks_fail(copy: Copy, field: str, change: Change):
    found = check(copy("wave").edit("config", change).folder)
    assert not found.verified
    assert found.failures


@pytest.mark.parametrize(
    "change",
    [
        put("products", 3, 0)(9),
        put("features", 1)([1]),
        put("terms", 0, 1)(99),
        put("own", 0, 0)(-1),
        put("radius", 0)("0"),
        put("arithmetic")("float16"),
        lambda data: data.pop("own"),
    ],
)
def test_networks_that_make_no_sense_are_refused(copy: Copy, change: Change):
    with pytest.raises(FileFormatError):
        check(copy("wave").edit("config", change).folder)


@pytest.mark.parametrize(
    "change", [put("constants", "ellipses", 0, "rho")("wide"), put("constants", "own_degrees")([])]
)
def test_constants_that_make_no_sense_are_refused(copy: Copy, change: Change):
    with pytest.raises(FileFormatError):
        check(copy("wave").edit("certificate", change).folder)


def test_hashes_are_compared(copy: Copy):
    saved = copy("pair")
    (saved.folder / "config.json").write_text((saved.folder / "config.json").read_text() + " ")
    assert any(f.startswith("config_sha256") for f in check(saved.folder).failures)


def test_a_corrupted_network_with_a_counterexample_is_not_verified(copy: Copy):
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors["coefficients"][-1] *= -1.5

    saved = copy("product").weights(change)
    broken = load(saved.folder)
    assert attack(broken.target, broken.network, seconds=1.0).worst > broken.certificate.total
    assert not check(saved.folder).verified


def test_a_larger_claim_does_not_hide_a_wrong_m(copy: Copy):
    """ε and the total are raised, M is wrong: the constant is refuted all the same."""

    def change(data: dict[str, Any]) -> None:
        data["constants"]["ellipses"][0]["maximum"] /= 1000
        data["terms"][0]["bound"] *= 100
        data["epsilon"] = 1.0
        data["total"] = sum(t["bound"] for t in data["terms"])

    assert any("|f| exceeds" in f for f in check(copy("pair").edit("certificate", change).folder).failures)


# ---- the parts


def test_the_expansion_is_the_networks_polynomial(samples: Samples):
    """Σ over orbits and arrangements of products of T equals N, at random tokens."""
    folder = samples("plane")
    net, network = read_polynomial(folder), load(folder).network
    found = expand(net, network.coefficients.detach().numpy())
    X = torch.rand(5, net.tokens, net.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = network(X)[:, 0].numpy()
    angles = np.arccos(2 * X.numpy() - 1)
    value = np.zeros_like(expected)
    for a, B, entries in zip(found.own, found.others, found.entries, strict=True):
        mine = np.prod(np.cos(angles[:, 0] * a), axis=-1)
        orders = {tuple(map(tuple, B[list(order)])) for order in itertools.permutations(range(net.m))}
        theirs = sum(np.prod(np.cos(angles[:, 1:] * np.array(order)), axis=(1, 2)) for order in orders)
        value += (mine * theirs)[:, None] * entries
    np.testing.assert_allclose(value, expected, atol=1e-12)


def test_orbit_products_are_tensor_products():
    """apply on multisets equals einsum on the full symmetric tensor."""
    random, A, B, C, m = np.random.default_rng(0), 2, 3, 4, 3
    chosen = members(B, m)
    values, own, others = random.normal(size=(A, len(chosen))), random.normal(size=(5, A)), random.normal(size=(C, B))
    full = np.empty((A, *[B] * m))
    for index in itertools.product(range(B), repeat=m):
        full[(slice(None), *index)] = values[:, rank(np.sort([index], axis=1))[0]]
    expected = np.einsum("za,bi,cj,dk,aijk->zbcd", own, others, others, others, full)
    found = apply(values, own, others, m)
    for r, multiset in enumerate(members(C, m)):
        np.testing.assert_allclose(found[:, r], expected[(slice(None), *multiset)], atol=1e-12)


def test_the_interpolant_meets_its_values_within_its_error():
    """Σ c T at the nodes is g there."""
    f = target("exp(x*sum(y))", n=3, d=1)
    values = node_values(f.expression, f.box, (4,), (3,), 2)
    coefficients, error = interpolant(values, (4,), (3,), 2)
    assert error < 1e-10
    at = [np.cos(np.outer((2 * np.arange(N + 1) + 1) * np.pi / (2 * N + 2), types((N,))[:, 0])) for N in (4, 3)]
    back = apply(coefficients[0], at[0], at[1], 2)
    np.testing.assert_allclose(back, values.middle[0], atol=error + 1e-12)


@pytest.mark.parametrize("mine", [True, False])
def test_ellipse_maxima_hold_at_random_points(mine: bool):
    """No point of the ellipse exceeds the bound, and one comes near it."""
    source, rho = "sum(y*exp(x*y))/sum(exp(x*y))", 2.0
    f = target(source, n=3, d=1)
    ellipse = TokenEllipse(f.expression, f.box, 3, mine, 0, rho)
    random = np.random.default_rng(1)
    X = random.integers(0, 2, size=(4000, 3)) * 1.0 + 0j
    angle, size = random.uniform(0, 2 * np.pi, 4000), rho
    z = (size * np.exp(1j * angle) + np.exp(-1j * angle) / size) / 2
    X[:, 0 if mine else 1] = (1 + z) / 2
    weights = np.exp(X[:, :1] * X)
    g = np.abs((weights * X).sum(axis=1) / weights.sum(axis=1)).max()
    with np.errstate(all="ignore"):
        bound = ellipse.maximum(1.5 * g)
        with pytest.raises(Unproved, match="exceeds"):
            ellipse.maximum(0.9 * g)
    assert g <= bound <= 1.5 * g


def test_a_target_that_is_not_analytic_there_is_not_verified(copy: Copy):
    change = put("target")(lambda source: source.replace("1 + dot", "0.001 + dot"))
    found = check(copy("product").edit("certificate", change).folder)
    assert not found.verified
    assert any("analytic" in f for f in found.failures)

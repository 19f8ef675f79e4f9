"""The checker of deep networks verifies what is true, and names what was forged."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tampered import put, rewrite, sign

from sumformer.certificates.checker import check
from sumformer.certificates.checker.deep.connections import connections
from sumformer.certificates.checker.deep.dyadic import affine, grain
from sumformer.certificates.quadrature import quadrature
from sumformer.errors import FileFormatError
from sumformer.nn import patterns as sparse
from sumformer.theorems.construction import construct, load
from sumformer.theorems.verification import verify

CASES = {
    "deep": ("x+mean(y)", 0.4, {"architecture": "deep-transformer", "n": 2}),
    "three": ("x+mean(y)", 1.9, {"architecture": "deep-transformer", "n": 3}),
    "two norms": ("tanh(x)*mean(y**2)", 0.2, {"architecture": "deep-transformer", "n": 2, "p": 2, "box": "-1:1"}),
    "wide": ("cat(x, mean(y))", 1.5, {"architecture": "deep-transformer", "n": 2}),
    "plane": ("norm(x-mean(y))", 0.45, {"architecture": "deep-transformer", "n": 2, "d": 2}),
    "sparse": ("x+mean(y)", 0.5, {"architecture": "sparse-transformer", "n": 3}),
    "strided": ("max(y)-x", 0.75, {"architecture": "sparse-transformer", "n": 4, "p": 2, "pattern": sparse.Strided(2)}),
    "sequence": ("i*x - mean(j*y)", 0.3, {"architecture": "deep-transformer", "n": 2, "positions": True}),
    "path": ("x/i + max(y)", 1.5, {"architecture": "sparse-transformer", "n": 3, "positions": True, "p": 2}),
    "zero": ("x+mean(y)", 3.0, {"architecture": "deep-transformer", "n": 2}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("deep")
    for name, (source, epsilon, options) in CASES.items():
        construct(source, epsilon, **options).save(root / name)
    return root


@pytest.mark.parametrize("name", CASES)
def test_what_is_built_is_verified(folders, name):
    found = check(folders / name)
    assert found.failures == ()
    assert found.verified
    assert found.bound <= found.claimed <= found.epsilon
    assert found.bound >= 0.9 * found.claimed  # the two computations are of the same thing
    assert (load(folders / name).network.attention_layers == 0) == (name == "zero")


def test_verify_measures_d_p_too(folders):
    verdict = verify(folders / "deep")
    assert verdict.verified
    assert verdict.attack.worst <= verdict.proof.claimed
    assert verdict.attack.by_kind.keys() == {"quadrature"}


def test_a_quadrature_refutes_a_bound_that_is_too_small(folders):
    built = load(folders / "deep")
    found = quadrature(built.target, built.network, 1.0, points=2**13)
    assert not found.refutes(built.certificate.total)
    assert found.refutes(0.5 * found.worst)


def forge(folder, tmp_path, tensors=None, config=None, certificate=None):
    """A copy with some of it changed and everything signed again."""
    weights = load_file(folder / "model.safetensors")
    description = json.loads((folder / "config.json").read_text())
    claims = json.loads((folder / "certificate.json").read_text())
    for change, value in ((tensors, weights), (config, description), (certificate, claims)):
        if change is not None:
            change(value)
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(description))
    (tmp_path / "certificate.json").write_text(json.dumps(claims))
    return sign(tmp_path)


def layers_of(folder):
    modules = json.loads((folder / "config.json").read_text())["layers"]["modules"]
    stacks = [i for i, module in enumerate(modules) if module["type"] == "ReluStack"]
    blocks = [i for i, module in enumerate(modules) if module["type"] == "ResidualBlock"]
    return stacks, blocks


def _changed(key, index, change):
    def apply(weights):
        value = weights[key].clone()
        value[index] = change(value[index])
        weights[key] = value

    return apply


def test_nothing_changed_is_still_verified(folders, tmp_path):
    assert check(forge(folders / "deep", tmp_path)).verified


@pytest.mark.parametrize("name", ["deep", "sparse"])
@pytest.mark.parametrize("what", ["value", "id", "threshold", "scale", "ramp", "place", "cut", "head"])
def test_a_forged_weight_is_found(folders, tmp_path, name, what):
    stacks, blocks = layers_of(folders / name)
    value, cut = stacks[-2], stacks[-1]
    forged = {
        "value": _changed(f"layers.{value}.W_2", (3,), lambda v: 1.5 * v),
        "id": _changed(f"layers.{value}.b_1", (3,), lambda v: v + 1),
        "threshold": _changed(f"layers.{blocks[1]}.attention.W_Q.bias", (0,), lambda v: v - 3 * 2048),
        "scale": _changed(f"layers.{blocks[0]}.attention.W_O.weight", (0, 1), lambda v: 0 * v),
        "ramp": _changed(f"layers.{stacks[0]}.b_1", (-1,), lambda v: v + 0.25),
        "place": _changed("embedding.map.bias", (0,), lambda v: v + 0.25),
        "cut": _changed(f"layers.{cut}.W_2", (-1,), lambda v: 0 * v),
        "head": _changed("head.map.weight", (0, 0), lambda v: 2 * v),
    }[what]
    found = check(forge(folders / name, tmp_path, tensors=forged))
    assert not found.verified
    assert found.failures


@pytest.mark.parametrize("name", ["deep", "sparse"])
def test_a_smaller_temperature_is_not_hardmax(folders, tmp_path, name):
    _, blocks = layers_of(folders / name)

    def cool(weights):
        for i in blocks:
            for key in ("weight", "bias"):
                weights[f"layers.{i}.attention.W_Q.{key}"] = weights[f"layers.{i}.attention.W_Q.{key}"] / 64

    found = check(forge(folders / name, tmp_path, tensors=cool))
    assert not found.verified


def test_claims_that_do_not_follow(folders, tmp_path):
    def smaller(c):
        for term in c["terms"]:
            term["bound"] /= 2
        c["total"] = sum(term["bound"] for term in c["terms"])

    found = check(forge(folders / "deep", tmp_path, certificate=smaller))
    assert any("is claimed" in failure for failure in found.failures)
    for change, said in (
        (lambda c: c.update(epsilon=c["total"] / 2), "epsilon"),
        (lambda c: c.update(norm="d_2"), "norm"),
        (lambda c: c.update(total=c["total"] / 2), "not the sum"),
        (lambda c: c["constants"].update(cells=c["constants"]["cells"] + 1), "proof"),
        (lambda c: c["constants"].update(parts="8"), "parts"),
        (lambda c: c.update(assumptions=[]), "assumptions"),
        (lambda c: c.update(target="x-mean(y)"), "total"),
        (lambda c: c.update(tokens="3"), "target"),
    ):
        found = check(forge(folders / "deep", tmp_path, certificate=change))
        assert not found.verified
        assert any(said in failure for failure in found.failures), (said, found.failures)


def test_a_hash_that_does_not_fit(folders, tmp_path):
    forged = forge(folders / "deep", tmp_path)
    rewrite(forged / "certificate.json", put("weights_sha256")("0" * 64))
    assert any("weights_sha256" in failure for failure in check(forged).failures)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(n="2"),
        lambda c: c["layers"]["modules"].pop(),
        lambda c: c["layers"]["modules"][1]["attention"].update(scale=True),
        lambda c: c["layers"]["modules"][1]["attention"].update(normaliser={"type": "Hardmax"}),
        lambda c: c["layers"]["modules"][1].update(dropout=0.5),
        lambda c: c["layers"]["modules"][0].update(d_hidden=3),
        lambda c: c.update(extra=1),
        lambda c: c["layers"]["modules"][0].update(fused=True),
        lambda c: c["layers"]["modules"][0].update(fused=1),
    ],
)
def test_another_network_is_a_file_format_error(folders, tmp_path, change):
    with pytest.raises(FileFormatError):
        check(forge(folders / "deep", tmp_path, config=change))


@pytest.mark.parametrize(
    "pattern",
    [
        sparse.Window(1),
        sparse.Strided(3),
        sparse.Fixed(3),
        sparse.Star(1),
        sparse.Longformer(1, 2),
        sparse.BigBird(1, 1, 2, 5),
        sparse.Random(3, 7),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [2, 3, 5, 8, 11])
def test_the_checkers_own_patterns_are_the_modules(pattern, n):
    for step in range(2 * pattern.p):
        assert (connections(pattern.config(), step, n) == pattern.matrix(n, step).numpy()).all()


def test_exactness_is_not_claimed_where_there_is_none():
    assert grain(np.array([6.0, 0.75])) == 0.25
    a, w = np.array([[2.0**52, 1.0]]), np.array([[1.0, 0.5]])
    value, error, _ = affine(a, w)
    assert error[0, 0] >= abs(2**52 + Fraction(1, 2) - Fraction(value[0, 0])) > 0
    assert affine(np.array([[2.0**50, 1.0]]), w)[1][0, 0] == 0


def test_a_loaded_network_computes_what_was_saved(folders):
    source, epsilon, options = CASES["sparse"]
    X = torch.rand(50, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(load(folders / "sparse")(X), construct(source, epsilon, **options)(X))


def test_a_sparse_layer_without_positions_is_not_taken_for_an_equivariant_one(folders, tmp_path):
    def thin(config):
        heads = config["layers"]["modules"][1]["attention"]
        pattern = {"type": "Window", "w": 0}
        heads.update(type="SparseAttention", pattern=pattern, composition="sequential", layer=0)

    def call_it_sparse(certificate):
        certificate |= {"architecture": "sparse-transformer", "route": "S Theorem 1"}
        certificate["constants"]["theorem"] = "S Theorem 1"

    found = check(forge(folders / "deep", tmp_path, config=thin))
    assert any("architecture" in failure for failure in found.failures)
    found = check(forge(folders / "deep", tmp_path, config=thin, certificate=call_it_sparse))
    assert any("attend to all" in failure for failure in found.failures)


def test_a_target_of_sequences_is_not_proved_for_sets(folders, tmp_path):
    """The same weights and claim for the function without places, and the other way round."""
    found = check(forge(folders / "sequence", tmp_path, certificate=lambda c: c["constants"].pop("positions")))
    assert not found.verified
    assert found.failures


@pytest.mark.parametrize("name", ["deep", "sparse"])
def test_look_ups_may_be_fused(folders, tmp_path, name):
    stacks, _ = layers_of(folders / name)

    def fuse(config):
        config["layers"]["modules"][stacks[-2]]["fused"] = True

    forged = forge(folders / name, tmp_path, config=fuse)
    assert check(forged).verified
    X = torch.rand(300, load(forged).network.n, 1, dtype=torch.float64)
    assert torch.equal(load(forged)(X), load(folders / name)(X))


THIN = [
    ("x", 0.128, {"n": 2, "box": "-1/3:1/7", "architecture": "sparse-transformer", "p": 8}),
    ("max(i*y)", 0.568, {"n": 3, "positions": True, "architecture": "sparse-transformer", "p": 3.5}),
]


@pytest.mark.parametrize(("source", "epsilon", "options"), THIN)
def test_thin_ramps_verify(source, epsilon, options, tmp_path):
    """Kinks that are multiples of 2⁻³⁰ meet weights that are multiples of 2³⁰: their products are whole numbers."""
    construct(source, epsilon, **options).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures

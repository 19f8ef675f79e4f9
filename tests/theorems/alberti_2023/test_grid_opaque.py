"""Route grid for a function without a formula: built on an assumed modulus, saved by name, checked as far as it can."""

import json

import pytest
import torch

import sumformer
from sumformer.certificates.attack import attack
from sumformer.errors import InputError, RefusedError


def spread(X):
    return (X - X.mean(1, keepdim=True)).norm(dim=-1, keepdim=True)


@pytest.fixture(scope="module")
def construction():
    return sumformer.construct(sumformer.target(spread, n=4, d=2, lipschitz=1.1), 0.1)


def test_the_bound_is_an_assumption_and_named(construction):
    certificate = construction.certificate
    assert certificate.route == "grid"
    assert [t.kind for t in certificate.terms] == ["assumed"]
    assert any(a.startswith("modulus:") and "1.1" in a for a in certificate.assumptions)
    assert any(a.startswith("equivariance:") for a in certificate.assumptions)
    assert certificate.total <= 0.1


def test_it_survives_the_attack(construction):
    found = attack(construction.target, construction.network, effort="quick", seconds=3)
    assert 0.5 * construction.certificate.total < found.worst <= construction.certificate.total


def test_the_attack_finds_a_modulus_that_is_too_small():
    def steep(X):
        return (50 * (X.mean(1, keepdim=True) - 0.123)).clamp(0, 1).expand_as(X)

    f = sumformer.targets.opaque.OpaqueTarget(
        steep, "steep", 1, 1, sumformer.target("x").box, sumformer.target("x", n=3).tokens, 1.0
    )
    c = sumformer.construct(f, 0.1)
    assert attack(c.target, c.network, effort="quick", seconds=3).worst > c.certificate.total


def test_a_folder_keeps_the_name_only(construction, tmp_path):
    construction.save(tmp_path)
    X = torch.rand(5, 4, 2, dtype=torch.float64)
    assert json.loads((tmp_path / "config.json").read_text())["function"] == f"{__name__}:spread"
    alone = sumformer.load(tmp_path)
    with pytest.raises(InputError, match="only the name"):
        alone(X)
    assert torch.equal(sumformer.load(tmp_path, function=spread)(X), construction(X))


def test_a_modulus_of_0_is_verified(tmp_path):
    c = sumformer.construct(sumformer.target(lambda X: 2 * X, n=3, lipschitz=0.0), 0.1)
    c.save(tmp_path)
    assert c.certificate.total == 0
    assert sumformer.verify(tmp_path).verified


def test_verify_says_what_it_cannot_check(construction, tmp_path):
    construction.save(tmp_path)
    verdict = sumformer.verify(tmp_path)
    assert verdict.verified
    assert verdict.attack is None
    assert any("not checked here" in a for a in verdict.proof.assumptions)
    assert verdict.proof.bound <= construction.certificate.total


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("assumed_lipschitz", 5.0, "total"),
        ("total", 1e-3, "total"),
        ("target", "opaque:other:name", "target"),
        ("tokens", "9", "tokens"),
        ("latent_dimension", 1, "latent_dimension"),
        ("assumptions", [], "modulus"),
        ("assumptions", [], "equivariance"),
    ],
)
def test_a_certificate_that_was_changed_does_not_verify(construction, tmp_path, field, value, word):
    construction.save(tmp_path)
    path = tmp_path / "certificate.json"
    data = json.loads(path.read_text())
    (data["constants"] if field in data["constants"] else data)[field] = value
    path.write_text(json.dumps(data))
    verdict = sumformer.verify(tmp_path)
    assert not verdict.verified
    assert any(word in failure for failure in verdict.proof.failures)


def test_tables_that_were_changed_do_not_verify(construction, tmp_path):
    from safetensors.torch import load_file, save_file

    construction.save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["centres.0"] = tensors["centres.0"] + 0.3
    save_file(tensors, tmp_path / "model.safetensors")
    proof = sumformer.verify(tmp_path).proof
    assert not proof.verified
    assert any("hash" in f for f in proof.failures)
    assert proof.bound > construction.certificate.total


def test_other_routes_and_architectures_need_a_formula():
    f = sumformer.target(spread, n=3, d=2, lipschitz=1.1)
    with pytest.raises(RefusedError, match="needs a formula"):
        sumformer.construct(f, 0.1, route="sums")
    with pytest.raises(RefusedError, match="reachable here"):
        sumformer.construct(f, 1e-9)
    with pytest.raises(RefusedError, match="float64"):
        sumformer.construct(f, 0.1, dtype="float32")

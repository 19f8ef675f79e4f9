"""Weights and certificate of a deep network changed together, so that only the proof can object."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tampered import Tampered, put, rewrite, sign

from sumformer.certificates.checker import check
from sumformer.certificates.quadrature import quadrature
from sumformer.theorems.construction import construct, load


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deep") / "net"
    construct("x+mean(y)", 0.4, architecture="deep-transformer", n=2).save(folder)
    assert check(folder).verified
    return folder


def test_a_smaller_temperature_that_is_recorded(original, tmp_path):
    """λ/64 in the weights and in the certificate: softmax itself is no longer hardmax."""
    saved = Tampered(original, tmp_path / "net")
    saved.weights(lambda t: t.update({k: v / 64 for k, v in t.items() if ".W_Q." in k}))
    saved.edit("certificate", lambda c: c["constants"].update(temperature=c["constants"]["temperature"] // 64))
    found = check(saved.folder)
    assert not found.verified
    assert not any("temperature" in why for why in found.failures), found.failures


def test_an_embedding_that_overflows(original, tmp_path):
    """All inputs lie on ramps then, and were bounded as if values there were those of cells; N is NaN."""
    saved = Tampered(original, tmp_path / "net")
    saved.weights(lambda t: t.update({"embedding.map.weight": t["embedding.map.weight"] * 0 + 1e300}))
    parts = dict(check(saved.folder).terms)

    def claim(c):
        for term in c["terms"]:
            term["bound"] = max(term["bound"], min(1e6, 1.01 * parts.get(term["name"], 0.0)))
        c["total"] = sum(t["bound"] for t in c["terms"])
        c["epsilon"] = 1.1 * c["total"]

    found = check(saved.edit("certificate", claim).folder)
    assert not found.verified
    assert "the embedding does not take the box to the cells" in " ".join(found.failures)


def test_a_layer_before_the_attention_that_writes_beyond_the_tokens(tmp_path):
    """With more outputs than coordinates, a layer among the quantising ones could add 1000 to an output, unseen."""
    options = {"n": 2, "architecture": "deep-transformer", "p": 1}
    construct("cat(x, mean(y))", 0.9, **options).save(tmp_path)
    assert check(tmp_path).verified
    tensors = load_file(tmp_path / "model.safetensors")
    for key in ("W_1", "b_1", "W_2"):
        old = tensors[f"layers.0.{key}"]
        tensors[f"layers.0.{key}"] = np.concatenate([np.zeros((1, *old.shape[1:])), old])
    tensors["layers.0.b_1"][0, 0] = 1.0
    tensors["layers.0.W_2"][0, 1, 0] = 1000.0
    save_file(tensors, tmp_path / "model.safetensors")
    rewrite(tmp_path / "config.json", put("layers", "modules", 0, "layers")(lambda count: count + 1))
    assert not check(sign(tmp_path)).verified


def test_scores_that_overflow_are_not_hardmax(tmp_path):
    """W_Q and W_K times 2^508 leave every argmax where it was, but softmax(∞) is no number."""
    construct("mean(y*x)", 0.3, n=2, architecture="deep-transformer").save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in (name for name in tensors if "W_Q" in name or "W_K" in name):
        tensors[name] = tensors[name] * 2.0**508
    save_file(tensors, tmp_path / "model.safetensors")
    found = check(sign(tmp_path))
    assert any("scores" in why for why in found.failures), found.failures
    assert not found.verified
    c = load(tmp_path)
    assert quadrature(c.target, c.network, 1.0, points=4096).refutes(c.certificate.total)

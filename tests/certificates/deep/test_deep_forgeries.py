"""Weights and certificate of a deep network changed together, so that only the proof can object."""

from __future__ import annotations

import pytest
from tampered import Tampered

from sumformer.certificates.checker import check
from sumformer.theorems.construction import construct


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

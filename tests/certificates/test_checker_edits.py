"""check of an `ExpressionSumformer`: an edited certificate, network or tensor fails, its hashes written again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tampered import Sample

from sumformer.certificates.checker import check

GAUSS = "sum(exp(-4*norm2(x - y))*y)/sum(exp(-4*norm2(x - y)))"
SAMPLES: dict[str, Sample] = {"gauss": (GAUSS, 1e-3, {"d": 2})}


def _term(data, change):
    for reduction in data["reductions"]:
        for component in reduction["components"]:
            for term in component:
                change(term)


CERTIFICATE_EDITS = {
    "target": lambda c: c.update(target=c["target"].replace("-4*", "-3.9*")),
    "box": lambda c: c.update(box="0:1.01"),
    "smaller box": lambda c: c.update(box="0:0.99"),
    "tokens": lambda c: c.update(tokens="7"),
    "arithmetic": lambda c: c.update(arithmetic="float32"),
    "epsilon": lambda c: c.update(epsilon=c["total"] * 0.999),
    "total": lambda c: c.update(total=c["total"] * 0.9),
    "negative total": lambda c: c.update(total=-1.0),
    "nan total": lambda c: c.update(total=float("nan")),
    "latent_dimension": lambda c: c.update(latent_dimension=1),
    "route": lambda c: c.update(route="exact"),
    "assumptions": lambda c: c.update(assumptions=[]),
    "a term": lambda c: c["terms"][1].update(bound=c["terms"][1]["bound"] * 0.9),
    "a negative term": lambda c: c["terms"][2].update(bound=-c["terms"][2]["bound"]),
    "a term's kind": lambda c: c["terms"][1].update(kind="sampled"),
    "the kind of another term": lambda c: c["terms"][1].update(kind="proved"),
    "all of the claim": lambda c: [
        c.update(total=sum(t["bound"] * 0.5 for t in c["terms"])),
        [t.update(bound=t["bound"] * 0.5) for t in c["terms"]],
    ],
    "terms swapped": lambda c: [
        t.update(bound=b) for t, b in zip(c["terms"], [t["bound"] for t in c["terms"][::-1]], strict=True)
    ],
    "interpolation degree": lambda c: c["constants"]["kernels"][0].update(interpolation_degree=8),
    "a higher interpolation degree": lambda c: c["constants"]["kernels"][0].update(interpolation_degree=13),
    "rho": lambda c: c["constants"]["kernels"][0]["ellipses"][0].update(rho=1.5),
    "larger rho": lambda c: c["constants"]["kernels"][0]["ellipses"][1].update(rho=40.0),
    "maximum": lambda c: c["constants"]["kernels"][1]["ellipses"][0].update(maximum=1e3),
    "larger maximum": lambda c: c["constants"]["kernels"][1]["ellipses"][0].update(maximum=1e12),
    "remainder": lambda c: c["constants"]["kernels"][0].update(remainder=1e-12),
    "dropped": lambda c: c["constants"]["kernels"][0].update(dropped=1e-9),
    "range": lambda c: c["constants"]["kernels"][0].update(range=[0.5, 7.5]),
    "degree": lambda c: c["constants"]["kernels"][0].update(degree=3),
    "kernel order": lambda c: c["constants"]["kernels"].reverse(),
    "a kernel missing": lambda c: c["constants"]["kernels"].pop(),
    "an ellipse missing": lambda c: c["constants"]["kernels"][0]["ellipses"].pop(),
}


@pytest.mark.parametrize("edit", CERTIFICATE_EDITS)
def test_an_edited_certificate_fails(edit, copy):
    saved = copy("gauss")
    saved.edit("certificate", CERTIFICATE_EDITS[edit])
    if edit == "tokens":  # sums are not means when n is known: the network's expression is another one
        assert any("target" in failure for failure in check(saved.folder).failures)
    result = check(saved.folder)
    assert not result.verified
    assert result.failures


CONFIG_EDITS = {
    "expression": lambda c: c.update(expression=c["expression"].replace("-4*", "-5*", 1)),
    "centre": lambda c: c.update(centre=["1/2", "0.4999"]),
    "radius": lambda c: c.update(radius=["1/2", "0.4999"]),
    "zero radius": lambda c: c.update(radius=["1/2", "0"]),
    "fewer centres": lambda c: c.update(centre=["1/2"]),
    "arithmetic": lambda c: c.update(arithmetic="float32"),
    "group": lambda c: c.update(group=1),
    "a huge group": lambda c: c.update(group=2**30),
    "a feature of a channel": lambda c: c["channels"][0]["support"].pop(5),
    "a feature twice": lambda c: c["channels"][0]["support"].append(c["channels"][0]["support"][0]),
    "channel factor": lambda c: c["channels"][0].update(factor="exp(-4*(y[0] - 0.5)**2 + -3*(y[1] - 0.5)**2)"),
    "channel factor of x": lambda c: c["channels"][0].update(factor="x[0]"),
    "wide channel factor": lambda c: c["channels"][0].update(factor="y"),
    "kernel expression": lambda c: c["kernels"][0].update(expression="exp(7*(x[0] - 0.5)*(y[0] - 0.5))"),
    "kernel of another coordinate": lambda c: c["kernels"][0].update(expression=c["kernels"][1]["expression"]),
    "kernel coordinates": lambda c: c["kernels"][0].update(coordinates=[1]),
    "kernel degrees": lambda c: c["kernels"][0].update(x_degrees=[7]),
    "kernels swapped": lambda c: c["kernels"].reverse(),
    "a product without a kernel": lambda c: c["products"][0].update(kernels=[0]),
    "a product with a kernel twice": lambda c: c["products"][0].update(kernels=[0, 0]),
    "many features of a product": lambda c: c["products"][0].update(support=c["products"][0]["support"][:20]),
    "a product's feature twice": lambda c: c["products"][0]["support"].append([0, 0]),
    "a product's feature beyond": lambda c: c["products"][0]["support"].append([0, 9]),
    "own factor": lambda c: _term(c, lambda t: t.update(own="exp(-4*(x[0] - 0.5)**2)")),
    "own factor of one": lambda c: c["reductions"][0]["components"][0][0].update(own="1"),
    "own factor of y": lambda c: c["reductions"][0]["components"][0][0].update(own="mean(y)[0]"),
    "polynomial": lambda c: c["reductions"][0]["components"][0][0]["polynomial"][1].__setitem__(1, "0.51"),
    "polynomial by a little": lambda c: c["reductions"][0]["components"][0][0]["polynomial"][1].__setitem__(
        1, "50000000000000001/100000000000000000"
    ),
    "components swapped": lambda c: c["reductions"][0]["components"].reverse(),
    "a reduction missing": lambda c: c["reductions"].pop(),
    "reductions swapped": lambda c: [
        r.update(components=k)
        for r, k in zip(c["reductions"], [r["components"] for r in c["reductions"][::-1]], strict=True)
    ],
    "a reduction twice": lambda c: c["reductions"].append(c["reductions"][0]),
    "a term's channel": lambda c: _term(c, lambda t: t.update(channel=1)),
    "a term's product": lambda c: _term(c, lambda t: t.update(product=1)),
    "an extra channel": lambda c: c["channels"].append({"factor": "exp(y[0])", "support": [[0, 0]]}),
}


@pytest.mark.parametrize("edit", CONFIG_EDITS)
def test_an_edited_network_fails(edit, copy):
    saved = copy("gauss")
    saved.edit("config", CONFIG_EDITS[edit])
    result = check(saved.folder)
    assert not result.verified
    assert result.failures


WEIGHT_EDITS = {
    "a large coefficient": lambda w, e: w["coefficients.0"].__setitem__((0, 0), w["coefficients.0"][0, 0] + e),
    "a small coefficient": lambda w, e: w["coefficients.1"].__setitem__((8, 7), w["coefficients.1"][8, 7] - e),
    "kernels swapped with a sign": lambda w, e: w.update({"coefficients.0": w["coefficients.1"] * (1 + e)}),
    "a row": lambda w, e: w["coefficients.0"].__setitem__(3, 0.0),
    "a transposed sign": lambda w, e: w["coefficients.0"].__setitem__((1, 1), -w["coefficients.0"][1, 1]),
    "nan": lambda w, e: w["coefficients.0"].__setitem__((2, 2), np.nan),
    "infinity": lambda w, e: w["coefficients.0"].__setitem__((2, 2), np.inf),
    "an extra tensor": lambda w, e: w.update(bias=np.zeros(3)),
    "a missing tensor": lambda w, e: w.pop("coefficients.1"),
    "a shape": lambda w, e: w.update({"coefficients.0": w["coefficients.0"][:-1].copy()}),
    "a dtype": lambda w, e: w.update({"coefficients.0": w["coefficients.0"].astype(np.float32)}),
}


@pytest.mark.parametrize("edit", WEIGHT_EDITS)
def test_edited_weights_fail(edit, copy):
    saved = copy("gauss")
    epsilon = json.loads((saved.folder / "certificate.json").read_text())["epsilon"]
    saved.weights(lambda w: WEIGHT_EDITS[edit](w, 1e-2 * epsilon))
    result = check(saved.folder)
    assert not result.verified
    assert result.failures

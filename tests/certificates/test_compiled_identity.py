"""The distance of two forms, and what a compiled network's values are known to be: nothing but what is shown."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from flint import fmpq
from safetensors.numpy import load_file
from tampered import Tampered

from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.atoms import Atom, Atoms
from sumformer.certificates.checker.compiled.element import Element, between
from sumformer.certificates.checker.compiled.expression_ideal import ExpressionIdeal
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.theorems.construction import construct


def named(atoms, size, power=1):
    return (atoms.zero, ((atoms.number(Atom(("named", size), {}, size, 0.0, True)), power),), 0)


@pytest.mark.parametrize(
    ("coefficient", "size", "power", "least"),
    [
        (fmpq(1, 10**400), math.inf, 1, math.inf),  # 0 · ∞
        (fmpq(1, 10**400), 1e300, 1, 1e-100),
        (fmpq(10**300), 1e-200, 2, 1e-100),
        (fmpq(1, 3), 3.0, 1, 1.0),
    ],
)
def test_the_mass_of_a_form_is_never_rounded_down(coefficient, size, power, least):
    atoms = Atoms(1)
    found = atoms.mass({named(atoms, size, power): coefficient})
    assert found >= least


@pytest.mark.parametrize(("power", "alpha", "known"), [(1, 0, True), (2, 0, False), (1, 1, False)])
def test_a_difference_of_logarithms_is_one_of_logarithms_alone(power, alpha, known):
    forms = Forms(1)
    atoms = forms.atoms
    one, two = ({named(atoms, size): fmpq(1)} for size in (1.5, 2.5))
    logs = [atoms.number(Atom("log", terms, 1.0, 0.0, False)) for terms in (one, two)]
    den = Element(two, 0.0, between(1.0, 2.0))
    quotient = SimpleNamespace(num=Element(one, 0.0, between(0.5, 1.0)), den=den, integrand=between(0.2, 0.6))
    ideal = ExpressionIdeal((0.0, 0.0), SimpleNamespace(forms=forms), [(one, quotient, 0.0)])
    terms = {((alpha,), ((logs[0], power),), 0): fmpq(1), (atoms.zero, ((logs[1], 1),), 0): fmpq(-1)}
    found = ideal._as_logarithm(Element(terms, 0.0, between(-9.0, 9.0)))
    assert (found is not None) == known


def test_a_form_beyond_float64_is_not_near_to_zero(tmp_path):
    """f = 10^{−360} · (numbers up to 10^{180})² is 1 at 0.3; the program is 0."""
    factor = "(0.001*mean(1000*exp(-{}*(y-0.3)**2)))**60"
    source = f"{factor.format(10**9)}*{factor.format(11 * 10**8)}"
    construct("x - mean(y)", 0.1, n=2, architecture="transformer").save(tmp_path / "net")
    construct(source, 1.0, n=2).save(tmp_path / "ideal")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    other = Tampered(tmp_path / "ideal", tmp_path / "other")
    read = {}
    other.edit("config", lambda c: read.update(config=dict(c)))
    other.edit("certificate", lambda c: read.update(certificate=dict(c)))

    def configure(config):
        for value in config["ledger"]["values"]:
            value.pop("because", None)
        config["ideal"] = read["config"]
        config["ledger"]["outputs"] = [{"of": [], "weights": [], "offset": 0.0}]

    def weights(tensors):
        for name in [n for n in tensors if n.startswith("ideal.")]:
            del tensors[name]
        tensors |= {f"ideal.{name}": v for name, v in load_file(other.folder / "model.safetensors").items()}
        tensors["read_out.weight"][:] = 0

    def certify(certificate):
        c = read["certificate"]
        certificate |= {"target": c["target"], "route": c["route"]}
        certificate["constants"]["ideal"] = {"kernels": c["constants"].get("kernels", [])}

    forged.weights(weights).edit("config", configure).edit("certificate", certify)
    found = check(forged.folder)
    assert not found.verified
    assert found.bound == math.inf

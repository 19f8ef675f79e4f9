"""What the proof needs of the saved Sumformer S: |f − S|, S over the atoms of the program, and ranges known from S."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sumformer.certificates.certificate import Certificate
from sumformer.certificates.checker.axes import kernel_failures
from sumformer.certificates.checker.claims import (
    NAMES,
    as_matrices,
    constant_failures,
    read_constants,
    weight_failures,
)
from sumformer.certificates.checker.compiled.element import Element
from sumformer.certificates.checker.compiled.expression_ideal import ExpressionIdeal
from sumformer.certificates.checker.compiled.files import Compiled
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.ledger import Value
from sumformer.certificates.checker.compiled.symmetric_ideal import SymmetricIdeal
from sumformer.certificates.checker.files import CONFIG_FILE, Tensors, network_of
from sumformer.certificates.checker.identity import identity_failures
from sumformer.certificates.checker.kernel_error import kernel_error
from sumformer.certificates.checker.network import structural_failures
from sumformer.certificates.checker.symmetric.claims import KEYS
from sumformer.certificates.checker.symmetric.files import as_matrix, polynomial_of
from sumformer.certificates.checker.symmetric.files import read_constants as read_orbit_constants
from sumformer.certificates.checker.symmetric.files import weight_failures as coefficient_failures
from sumformer.certificates.checker.verdict import key_failures
from sumformer.certificates.checker.verification import Unproved
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.target import Target


class Ideal(Protocol):
    """S, proved near f."""

    @property
    def parts(self) -> tuple[float, float]:
        """Interpolation remainder; dropped and rounded coefficients."""
        ...

    def refine(self, value: Value, found: Element) -> Element:
        """The same value with what S says of it: a narrower range, or a name."""
        ...

    def outputs(self) -> list[list[Element]]:
        """S itself, written in one or more ways; each is S."""
        ...


def prove_ideal(folder: Path, c: Certificate, f: Target, net: Compiled, forms: Forms) -> Ideal:
    """S from its configuration and tensors, with |f − S| derived again."""
    nested = c.constants.get("ideal")
    if not isinstance(nested, dict):
        raise FileFormatError(folder / "certificate.json", "expected the constants of the Sumformer under ideal")
    inner = replace(c, constants=nested)
    tensors = {name.removeprefix("ideal."): t for name, t in net.tensors.items() if name.startswith("ideal.")}
    if net.ideal.get("arithmetic") != "float64":
        raise Unproved("ideal: expected float64")
    if net.ideal.get("type") == "SymmetricSumformer":
        return _symmetric(folder, inner, f, net, tensors, forms)
    return _expression(folder, inner, f, net, tensors, forms)


def _described(folder: Path, make: Any, *arguments: Any) -> Any:
    try:
        return make(*arguments)
    except (SumformerError, ValueError, TypeError, KeyError, RecursionError, ZeroDivisionError, OverflowError) as error:
        raise FileFormatError(folder / CONFIG_FILE, f"its ideal network cannot be read ({error})") from error


def _symmetric(folder: Path, c: Certificate, f: Target, net: Compiled, tensors: Tensors, forms: Forms) -> Ideal:
    polynomial = _described(folder, polynomial_of, net.ideal)
    fits = f.tokens.exact and f.tokens.maximum == polynomial.tokens and f.width == polynomial.width
    if not fits or (polynomial.centre, polynomial.radius) != (f.box.centre, f.box.radius):
        raise Unproved("ideal: its tokens, width or box are not the target's")
    _require(coefficient_failures(dict(tensors), polynomial))
    _require(key_failures(c.constants, KEYS))
    recorded = read_orbit_constants(folder, c, polynomial)
    return SymmetricIdeal.prove(f, polynomial, as_matrix(dict(tensors)), recorded, c.total, forms)


def _expression(folder: Path, c: Certificate, f: Target, net: Compiled, tensors: Tensors, forms: Forms) -> Ideal:
    network = _described(folder, network_of, net.ideal, f.d)
    if network.expression != f.countless or (network.centre, network.radius) != (f.box.centre, f.box.radius):
        raise Unproved("ideal: its expression or box is not the target's")
    _require(structural_failures(network) or weight_failures(dict(tensors), network))
    _require(kernel_failures(network) + identity_failures(network))
    constants, failures = read_constants(folder, c, network)
    _require(failures + key_failures(c.constants, {"kernels"}))
    weights = as_matrices(dict(tensors), network)
    errors = []
    with np.errstate(all="ignore"):
        for g, (kernel, recorded) in enumerate(zip(network.kernels, constants, strict=True)):
            errors.append(kernel_error(kernel, weights[g], network, recorded))
            _require(constant_failures(g, recorded, errors[-1]))
        return ExpressionIdeal.prove(f, network, weights, errors, _claimed(c), forms)


def _claimed(c: Certificate) -> float:
    """|f − S| as the certificate has it."""
    return sum(term.bound for term in c.terms if term.name in NAMES[:2])


def _require(failures: list[str]) -> None:
    if failures:
        raise Unproved(f"ideal: {'; '.join(failures)}")

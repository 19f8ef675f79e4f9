"""check(directory): is the claim of a saved construction true? Everything is derived again from the saved files.

f is the target, N the saved network, B' the bound found here; `total` and ε are the certificate's.

0. integrity        hashes; certificate, configuration and weights fit together
1. identity         every reduction is exactly the sum of its terms, with the kernels as written
2. kernels          e_g ≥ sup |K_g − K̃_g|, K̃_g the polynomial with the stored coefficients
3. propagation      B' ≥ sup |f − N| in the stated arithmetic
4. verified         iff nothing failed and B' ≤ total ≤ ε
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from sumformer.certificates.certificate import OWN_TOKEN, Certificate
from sumformer.certificates.checker.axes import kernel_failures
from sumformer.certificates.checker.claims import (
    KINDS,
    NAMES,
    as_matrices,
    constant_failures,
    field_failures,
    read_constants,
    weight_failures,
)
from sumformer.certificates.checker.features import FeatureRounding
from sumformer.certificates.checker.files import Tensors, read_certificate, read_network, read_weights
from sumformer.certificates.checker.identity import identity_failures
from sumformer.certificates.checker.kernel_error import KernelConstants, kernel_error
from sumformer.certificates.checker.network import Network, structural_failures
from sumformer.certificates.checker.proof import Setting, left_out_mass
from sumformer.certificates.checker.propagation import Errors, Parts, part_failures, propagated
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import hash_failures, proved_verdict, term_failures
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.target import Target


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`; files that cannot be read are a `FileFormatError`."""
    start, folder = time.perf_counter(), Path(directory)
    c, tensors = read_certificate(folder), read_weights(folder)
    net, f = read_network(folder, c.d), read_target(folder, c)
    constants, failures = read_constants(folder, c, net)
    failures += hash_failures(folder, c) + field_failures(c, f, net) + term_failures(c, KINDS)
    broken = structural_failures(net) + weight_failures(tensors, net)
    of_the_target = (net.expression, net.centre, net.radius) == (f.countless, f.box.centre, f.box.radius)
    if not broken and of_the_target:
        broken = kernel_failures(net) + identity_failures(net)
    fits = not broken and of_the_target and len(constants) == len(net.kernels)
    proof = partial(_prove, c, f, net, tensors, constants)
    return proved_verdict(c, NAMES, failures + broken, fits, proof, start)


def _prove(
    c: Certificate, f: Target, net: Network, tensors: Tensors, constants: list[KernelConstants]
) -> tuple[Parts, list[str]]:
    """The three parts of B', and what is wrong with the recorded constants and terms."""
    weights = as_matrices(tensors, net)
    failures, errors = [], []
    for g, (kernel, recorded) in enumerate(zip(net.kernels, constants, strict=True)):
        try:
            errors.append(kernel_error(kernel, weights[g], net, recorded))
        except Unproved as why:
            raise Unproved(f"kernel {g}: {why}") from None
        failures += constant_failures(g, recorded, errors[-1])
    left_out = tuple(left_out_mass(net, weights, j) for j in range(len(net.products)))
    found = Errors(tuple(e.remainder for e in errors), tuple(e.total for e in errors), left_out)
    own, rounding = OWN_TOKEN in c.assumptions, partial(FeatureRounding, merges=c.merges)
    parts = propagated(c.total, net, lambda cells: Setting(net, f.tokens, weights, cells, own, rounding), found)
    return parts, failures + part_failures(c, NAMES, parts)

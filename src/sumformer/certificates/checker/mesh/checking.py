"""check(directory) of a `MeshSumformer`: everything is derived again from the saved files.

f is the target, N the saved network, B' the bound found here; `total` and ε are the certificate's.

0. integrity        hashes; certificate, configuration and samples fit together
1. identity         every reduction is exactly the sum of its terms, every kernel a function of x − y
2. kernels          e_g ≥ sup |K_g − K̂_g|, K̂_g from the stored samples, at the places that N computes
3. propagation      B' ≥ sup |f − N| in the stated arithmetic
4. verified         iff nothing failed and B' ≤ total ≤ ε
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from sumformer.certificates.certificate import OWN_TOKEN, Certificate
from sumformer.certificates.checker.cells import Cells
from sumformer.certificates.checker.files import Tensors, read_certificate, read_weights
from sumformer.certificates.checker.identity import identity_failures
from sumformer.certificates.checker.mesh.claims import (
    KINDS,
    NAMES,
    as_samples,
    constant_failures,
    field_failures,
    read_constants,
    weight_failures,
)
from sumformer.certificates.checker.mesh.files import read_network
from sumformer.certificates.checker.mesh.kernel_error import MeshConstants, kernel_error
from sumformer.certificates.checker.mesh.network import MeshNetwork, structural_failures
from sumformer.certificates.checker.mesh.rounding import MeshRounding
from sumformer.certificates.checker.proof import Setting
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
    broken = structural_failures(net) or weight_failures(tensors, net)
    sums = net.sums
    of_the_target = (sums.expression, sums.centre, sums.radius) == (f.countless, f.box.centre, f.box.radius)
    if not broken and of_the_target:
        broken = identity_failures(sums)
    fits = not broken and of_the_target and len(constants) == len(net.meshes)
    proof = partial(_prove, c, f, net, tensors, constants)
    return proved_verdict(c, NAMES, failures + broken, fits, proof, start)


def _prove(
    c: Certificate, f: Target, net: MeshNetwork, tensors: Tensors, constants: list[MeshConstants]
) -> tuple[Parts, list[str]]:
    """The three parts of B', and what is wrong with the recorded constants and terms."""
    samples = as_samples(tensors, net)
    failures, errors = [], []
    for g, recorded in enumerate(constants):
        try:
            errors.append(kernel_error(net, g, samples[g], recorded))
        except Unproved as why:
            raise Unproved(f"kernel {g}: {why}") from None
        failures += constant_failures(net, g, recorded, errors[-1])

    def on_cells(cells: Cells) -> Setting:
        own, rounding = OWN_TOKEN in c.assumptions, partial(MeshRounding, net.meshes, merges=c.merges)
        return Setting(net.sums, f.tokens, samples, cells, own_token=own, rounding=rounding)

    nothing = (0.0,) * len(net.sums.products)
    found = Errors(
        tuple(e.remainder for e in errors),
        tuple(e.total for e in errors),
        nothing,
        tuple(e.remainder_share for e in errors),
        tuple(e.share for e in errors),
    )
    parts = propagated(c.total, net.sums, on_cells, found)
    return parts, failures + part_failures(c, NAMES, parts)

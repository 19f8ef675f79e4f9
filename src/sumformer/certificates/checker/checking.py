"""check(directory): is the claim of a saved construction true? Everything is derived again from the saved files.

0. integrity        hashes; certificate, configuration and weights fit together
1. identity         every reduction is exactly the sum of its terms, with the kernels as written
2. kernels          e_g ≥ sup |K_g − K̃_g| with the stored coefficients
3. propagation      B' ≥ sup |f − N| in the stated arithmetic
4. verified         iff nothing failed and B' ≤ total ≤ ε
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

from sumformer.certificates.certificate import OWN_TOKEN, Certificate
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.axes import kernel_failures, most_axes
from sumformer.certificates.checker.bound import bound
from sumformer.certificates.checker.cells import Cells, cells_per_axis
from sumformer.certificates.checker.claims import (
    KINDS,
    NAMES,
    as_matrices,
    constant_failures,
    field_failures,
    read_constants,
    weight_failures,
)
from sumformer.certificates.checker.files import read_certificate, read_network, read_weights
from sumformer.certificates.checker.identity import identity_failures
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.kernel_error import KernelConstants, KernelError, kernel_error
from sumformer.certificates.checker.network import Network, structural_failures
from sumformer.certificates.checker.proof import Pass, Setting, left_out_mass
from sumformer.certificates.checker.saved_target import read_target
from sumformer.certificates.checker.verdict import (
    claim_failures,
    claims,
    finite_sum,
    hash_failures,
    proving,
    term_failures,
    verdict,
)
from sumformer.certificates.checker.verification import Unproved, Verification
from sumformer.targets.domain import Tokens
from sumformer.targets.target import Target

BUDGETS = (40_000, 600_000)  # cells of the largest array: the second only where the first does not suffice

HOPELESS = 2.0  # B' over the claim, beyond which finer cells are not tried

Parts = tuple[float, float, float]


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
    parts: Parts = (math.inf, math.inf, math.inf)
    if not broken and of_the_target and len(constants) == len(net.kernels):
        with proving(failures):
            parts, found = _prove(c, f, net, as_matrices(tensors, net), constants)
            failures += found
    return verdict(c, dict(zip(NAMES, parts, strict=True)), finite_sum(parts), failures + broken, start)


def _prove(
    c: Certificate, f: Target, net: Network, weights: tuple[Floats, ...], constants: list[KernelConstants]
) -> tuple[Parts, list[str]]:
    """The three parts of B', and what is wrong with the recorded constants and terms."""
    failures, errors = [], []
    for g, (kernel, recorded) in enumerate(zip(net.kernels, constants, strict=True)):
        try:
            errors.append(kernel_error(kernel, weights[g], net, recorded))
        except Unproved as why:
            raise Unproved(f"kernel {g}: {why}") from None
        failures += constant_failures(g, kernel, recorded, errors[-1])
    parts: Parts = (math.inf, math.inf, math.inf)
    for budget in BUDGETS:
        cells = Cells(net, cells_per_axis(budget, most_axes(net)))
        setting = Setting(net, f.tokens, weights, cells, own_token=OWN_TOKEN in c.assumptions)
        try:
            parts = _parts(setting, errors)
        except Unproved:
            if budget == BUDGETS[-1]:
                raise
        if not c.total < math.fsum(parts) < HOPELESS * c.total and math.fsum(parts) < math.inf:
            break  # enough, or too far off for finer cells to help
    found = dict(zip(NAMES, parts, strict=True))
    return parts, failures + claim_failures(c, claims(c), found, lambda _, claim: 2 * claim + 1e-6 * c.total)


def _parts(setting: Setting, errors: list[KernelError]) -> Parts:
    """B' with the remainder alone, then with the coefficients, then with rounding; as differences."""
    net, weights = setting.net, setting.weights
    left_out = tuple(left_out_mass(net, weights, j) for j in range(len(net.products)))
    exact, rounded = Arithmetic.exact(), Arithmetic.named(net.arithmetic)
    remainders, totals = tuple(e.remainder for e in errors), tuple(e.total for e in errors)
    first = second = third = 0.0
    for piece in token_pieces(net, setting.tokens):
        part = replace(setting, tokens=piece)
        first = max(first, bound(Pass(part, exact, remainders, (0.0,) * len(left_out))))
        second = max(first, second, bound(Pass(part, exact, totals, left_out)))
        third = max(second, third, bound(Pass(part, rounded, totals, left_out)))
    return first, second - first, math.nextafter(third - second, math.inf) if third > second else 0.0


def token_pieces(net: Network, tokens: Tokens) -> list[Tokens]:
    """The numbers of tokens in pieces [m, 2m] where the target has true sums: their size and error grow with n."""
    if not any(r.node.kind in ("sum", "sum_others") for r in net.reductions):
        return [tokens]
    pieces, low = [], tokens.minimum
    while low <= tokens.maximum:
        pieces.append(Tokens(low, min(2 * low, tokens.maximum)))
        low = 2 * low + 1
    return pieces

"""A 2.12 (Briand): the power sums p_β = Σ_j y_j^β, 0 < |β| ≤ m, generate every multisymmetric polynomial of m tokens.

With an own token, steps 2 and 3 of the continuous proof of A 4.1: p(x; y_1, …, y_m) = Σ_α x^α σ_α(p_β), m = n − 1.
φ(y) = (y^β)_β, so the choice of the β is that of the latent dimension d'; more of them make σ simpler:

proof       0 < |β| ≤ n       the paper's φ, d' = C(n+d, d) − 1
sufficient  0 < |β| ≤ n − 1   enough, as only n − 1 tokens are summed over: d' = C(n−1+d, d) − 1
shallowest  no bound          p_β up to the polynomial's degree, those that occur: σ has the fewest products
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from sumformer.algebra.expanded_polynomial import Expanded, ExpandedPolynomial
from sumformer.algebra.identity_proof import IdentityProof, prove_identity
from sumformer.algebra.multisymmetric import in_power_sums
from sumformer.algebra.orbit_sums import Degree
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial
from sumformer.algebra.power_sum_reduction import within
from sumformer.algebra.rational_ring import RationalRing, terms_of
from sumformer.algebra.small_polynomial import MOST_TERMS, MOST_TOKENS, SmallPolynomial
from sumformer.errors import InputError
from sumformer.targets import Node, Token, parse, postorder, reductions
from sumformer.theorems.alberti_2023.polynomial_size import require_moderate, size_of
from sumformer.theorems.alberti_2023.polynomial_tree import RingOperations, as_polynomial, over_tokens
from sumformer.theorems.alberti_2023.sum_homomorphism import sums_in_power_sums
from sumformer.theorems.alberti_2023.tree_residue import prove_tree_identity

Latent = Literal["proof", "sufficient", "shallowest"]
CHOICES: Final[tuple[Latent, ...]] = get_args(Latent)
Polynomial = Expanded | Node | str


@dataclass(frozen=True, eq=False)
class PowerSumForm:
    """σ, one for each output coordinate, and the proof that σ ∘ power sums is the polynomial given."""

    n: int
    d: int
    latent: Latent
    sigmas: tuple[PowerSumPolynomial, ...]
    proofs: tuple[IdentityProof, ...]

    @property
    def betas(self) -> tuple[Degree, ...]:
        """The β that occur in some coordinate, smallest degree first."""
        return tuple(sorted({b for s in self.sigmas for b in s.betas}, key=lambda b: (sum(b), b)))

    @property
    def dimension(self) -> int:
        """d' = the number of monomials y^β in φ: all within the bound, or those that occur for "shallowest"."""
        limit = {"proof": self.n, "sufficient": self.sigmas[0].m}.get(self.latent)
        return len(self.betas) if limit is None else math.comb(limit + self.d, self.d) - 1

    @property
    def terms(self) -> int:
        return sum(map(len, self.sigmas))

    @property
    def products(self) -> int:
        """The largest number of power sums multiplied in σ."""
        return max(s.products for s in self.sigmas)

    @property
    def failure_probability(self) -> float:
        """Of the proofs together: 0 when all were by expansion."""
        return math.fsum(p.failure_probability for p in self.proofs)


def multisymmetric(
    f: Polynomial, n: int, d: int = 1, latent: Latent = "shallowest", source: random.Random | None = None
) -> PowerSumForm:
    """A 2.12: f(x_1, …, x_n), the same under every permutation of its n tokens, in their power sums."""
    return _forms(f, n, d, 0, (latent,), source)[0]


def semi_invariant_form(
    g: Polynomial, n: int, d: int = 1, latent: Latent = "shallowest", source: random.Random | None = None
) -> PowerSumForm:
    """A 4.1, steps 2 and 3: g(x_1; x_2, …, x_n), the same when x_2 … x_n are permuted, as σ(x_1; Σ_{j≥2} φ(x_j)).

    g is {exponents of x_1, …, x_n: coefficient}; or a target with sums over tokens, whose own token is x_1; or a tree
    without sums about a single x of width n·d that holds all tokens one after another, from `parse(text, n * d)`.
    """
    return _forms(g, n, d, 1, (latent,), source)[0]


def side_by_side(
    g: Polynomial, n: int, d: int = 1, source: random.Random | None = None
) -> tuple[PowerSumForm, PowerSumForm, PowerSumForm]:
    """`semi_invariant_form` with each of the three latent dimensions: proof, sufficient, shallowest."""
    proof, sufficient, shallowest = _forms(g, n, d, 1, CHOICES, source)
    return proof, sufficient, shallowest


def expand(node: Node, n: int, d: int = 1) -> tuple[dict[tuple[int, ...], Fraction], ...]:
    """Every coordinate of f(X)_1 written out over n tokens; a tree about an x of width n·d has them all in x."""
    tree, flat = as_polynomial(node), _is_flat(node, n, d)
    size = size_of(tree, n, n * d if flat else d, expanded=True)
    require_moderate(size, n * d)
    ring = RationalRing(n * d)
    rows = [tuple(ring.generators[i * d : (i + 1) * d]) for i in range(n)]
    tokens: Sequence[Any] = [tuple(ring.generators)] if flat else rows
    return tuple(terms_of(element) for element in over_tokens(tree, RingOperations(ring.constant), tokens))


def _forms(
    f: Polynomial, n: int, d: int, own: int, choices: Sequence[Latent], source: random.Random | None
) -> list[PowerSumForm]:
    if n < 1 or d < 1:
        raise InputError(f"power sums: expected n ≥ 1 tokens and d ≥ 1 coordinates, got n = {n}, d = {d}")
    for choice in choices:
        if choice not in CHOICES:
            raise InputError(f"latent: expected one of {', '.join(CHOICES)}, got {choice!r}")
    tree = parse(f, d) if isinstance(f, str) else f
    if isinstance(tree, Node) and not _is_flat(tree, n, d):
        if not own:
            raise InputError("multisymmetric: expected exponents, or a tree about an x of width n·d with all tokens")
        polynomial = as_polynomial(tree)
        direct = sums_in_power_sums(polynomial, n, d)
        chosen = [tuple(_chosen(s, choice, n) for s in direct) for choice in choices]
        proofs = {key: (prove_tree_identity(polynomial, key, n, d, source),) for key in chosen}
        return [PowerSumForm(n, d, choice, s, proofs[s]) for choice, s in zip(choices, chosen, strict=True)]
    written = expand(tree, n, d) if isinstance(tree, Node) else (tree,)
    readings = [_read(p, n, d, own, source) for p in written]
    proved: dict[PowerSumPolynomial, IdentityProof] = {}
    forms = []
    for choice in choices:
        sigmas = tuple(_chosen(shallowest, choice, n) for shallowest, _ in readings)
        for s, (_, prove) in zip(sigmas, readings, strict=True):
            if s not in proved:
                proved[s] = prove(s)
        forms.append(PowerSumForm(n, d, choice, sigmas, tuple(proved[s] for s in sigmas)))
    return forms


def _read(
    f: Expanded, n: int, d: int, own: int, source: random.Random | None
) -> tuple[PowerSumPolynomial, Callable[[PowerSumPolynomial], IdentityProof]]:
    """σ, and the program that proves such a σ equal to f."""
    if len(f) * d <= MOST_TERMS and n <= MOST_TOKENS:
        small = SmallPolynomial(f, n, d, own)
        return small.in_power_sums(), lambda s: small.prove(s, source)
    large = ExpandedPolynomial.of(f, n, d)
    return in_power_sums(large, own), lambda s: prove_identity(large, s, own, source=source)


def _chosen(sigma: PowerSumPolynomial, latent: Latent, n: int) -> PowerSumPolynomial:
    return sigma if latent == "shallowest" else within(sigma, n if latent == "proof" else sigma.m)


def _is_flat(node: Node, n: int, d: int) -> bool:
    """Whether x holds all n tokens: its width is n·d rather than d, and there is no sum over tokens."""
    widths = {part.d for part in postorder(node) if isinstance(part, Token)}
    if widths <= {d}:
        return False
    if widths == {n * d} and not reductions(node):
        return True
    raise InputError(f"expected tokens of width d = {d}, or one x of width n·d = {n * d} and no sums; got {widths}")

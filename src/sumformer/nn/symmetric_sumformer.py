"""ψ(x, Σ) = Σ_t C_t · T_{α_t}(u) · Π_{β ∈ B_t} q_β,  q_β = Σ_β − T_β(u) = Σ_{j≠i} T_β(u_j),  u = (x − centre)/radius.

The Sumformer of Theorem 4.1's continuous proof for exactly n tokens: φ(x) = (T_β(u))_β, Chebyshev power sums of the
others, the own token removed by subtraction, ψ a polynomial. Its products share prefixes: a trie, one level per factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.arithmetics import dtypes_of
from sumformer.nn.box_features import BoxFeatures, slabs
from sumformer.nn.inputs import zero_padding
from sumformer.nn.sequence_reader import SequenceReader
from sumformer.nn.summary import Summary


class SymmetricSumformer(BoxFeatures, SequenceReader):
    """(batch, n, d) → (batch, n, width). The coefficients are made for n = `tokens`, padding not counted.

    config.json holds the arguments, `type` "SymmetricSumformer":
      d, tokens, width      integers
      centre, radius        d exact rationals each, as strings
      arithmetic            "float64", "float32" or "mixed" (float32 in and out, float64 inside)
      own                   the multi-indices α, lists of d integers ≥ 0: T_α(u) = Π_c T_{α_c}(u_c)
      features              the multi-indices β ≠ 0 of φ, without repetition; their number is d'
      products              the trie: entry i describes node i + 1 as [parent, feature], its product being that of the
                            node `parent` times q_β with β = features[feature]; node 0 is the empty product 1.
                            Parents come before their children, and nodes are ordered by their number of factors
      terms                 [a, p] for each t: α_t = own[a], and B_t the factors of node p
    model.safetensors holds one tensor, `coefficients` C of shape (terms, width), in the dtype of the inside.

    Computed as: t̂ = clamp((x − centre)·(1/radius), −1, 1); T_{k+1} = 2 t̂ T_k − T_{k−1}; T_β as a product over
    coordinates from the first on; Σ_β by one sum over tokens in any order (weights multiply first);
    q_β = Σ_β − T_β(u); nodes by one product each; T_α(u) times its node; a matrix product with C.
    """

    group = 1024  # all tokens are one group of the summation tree: n is small
    own_among_sources = True  # ψ takes the own token out of Σ, so that queries must be the sources
    coefficients: nn.Parameter

    def __init__(
        self,
        d: int,
        tokens: int,
        width: int,
        centre: Sequence[str],
        radius: Sequence[str],
        arithmetic: str,
        own: Sequence[Sequence[int]],
        features: Sequence[Sequence[int]],
        products: Sequence[Sequence[int]],
        terms: Sequence[Sequence[int]],
    ) -> None:
        super().__init__()
        self.inside, self.outside = dtypes_of(arithmetic, "SymmetricSumformer")
        self.d, self.tokens, self.width, self.arithmetic = d, tokens, width, arithmetic
        self.centre, self.radius = list(centre), list(radius)
        self.own, self.features = [list(a) for a in own], [list(b) for b in features]
        self.products, self.terms = [list(p) for p in products], [list(t) for t in terms]
        self._check()
        self.depths = _depths(self.products)
        self.degrees = [max([0, *(k[c] for k in (*self.own, *self.features))]) for c in range(d)]
        self.coefficients = nn.Parameter(torch.zeros(len(self.terms), width, dtype=self.inside))
        self._add_constants()

    @property
    def latent_dimension(self) -> int:
        """d': the number of summed features."""
        return len(self.features)

    @property
    def exact_n(self) -> int:
        return self.tokens

    # ---- φ and Σ

    def _summarise(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
        z = self._padded(z.to(self.inside), keep)
        w = self._weights(z, weights, keep)
        features = self._select(self._tables(z, self.degrees), "feature")
        return Summary((w.unsqueeze(-1) * features).sum(dim=1), w.double().sum(dim=1))

    # ---- ψ

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for tokens x (batch, s, d) that are among those Σ was taken over."""
        x = x.to(self.inside)
        widest = max(1, len(self.terms), len(self.products) + 1)
        out = [self._psi(piece, state.total) for (piece,) in slabs(widest, x)]
        return torch.cat(out, dim=1).to(self.outside)

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        x = self._padded(x, keep)
        return zero_padding(self.psi_of(x, self._summarise(x, None, keep)), keep)

    def _psi(self, x: Tensor, total: Tensor) -> Tensor:
        tables = self._tables(x, self.degrees)
        q = total.unsqueeze(1) - self._select(tables, "feature")
        nodes = [x.new_ones(*x.shape[:2], 1)]
        for k in range(len(self.depths)):
            parents, factors = self._constant(f"parent_{k}", x), self._constant(f"factor_{k}", x)
            nodes.append(nodes[-1].index_select(-1, parents) * q.index_select(-1, factors))
        products = torch.cat(nodes, dim=-1).index_select(-1, self._constant("term_node", x))
        own = self._select(tables, "own").index_select(-1, self._constant("term_own", x))
        return (own * products) @ self.coefficients

    # ---- small things

    def _select(self, tables: list[Tensor], name: str) -> Tensor:
        """Π_c T_{k_c} for every multi-index k of a list, (batch, s, list)."""
        value = tables[0].index_select(-1, self._constant(f"{name}_0", tables[0]))
        for c in range(1, self.d):
            value = value * tables[c].index_select(-1, self._constant(f"{name}_{c}", tables[c]))
        return value

    def _check(self) -> None:
        where = "SymmetricSumformer"
        if self.d < 1 or self.tokens < 1 or self.width < 1:
            raise InputError(f"{where}: expected d, tokens, width ≥ 1, got {self.d}, {self.tokens}, {self.width}")
        if len(self.centre) != self.d or len(self.radius) != self.d or not all(Fraction(r) > 0 for r in self.radius):
            raise InputError(f"{where}: expected {self.d} centres and {self.d} radii > 0")
        for name, indices in (("own", self.own), ("features", self.features)):
            if any(len(k) != self.d or min(k) < 0 for k in indices):
                raise InputError(f"{where}: expected {name} to be lists of {self.d} integers ≥ 0")
        if len({tuple(b) for b in self.features}) < len(self.features) or any(not any(b) for b in self.features):
            raise InputError(f"{where}: expected features to be distinct and not 0")
        for i, (parent, feature) in enumerate(self.products):
            if not (0 <= parent <= i and 0 <= feature < len(self.features)):
                raise InputError(f"{where}: product {i} refers to what does not exist")
        if any(not (0 <= a < len(self.own) and 0 <= p <= len(self.products)) for a, p in self.terms):
            raise InputError(f"{where}: a term refers to what does not exist")

    def _add_constants(self) -> None:
        """Everything that follows from the configuration: index maps and rounded constants, not saved."""
        self._add_box()
        for c in range(self.d):
            self._add_index(f"feature_{c}", [b[c] for b in self.features])
            self._add_index(f"own_{c}", [a[c] for a in self.own])
        first, before = 1, 0  # the first node of a level, and of the level above it
        for k, count in enumerate(self.depths):
            level = self.products[first - 1 : first - 1 + count]
            self._add_index(f"parent_{k}", [parent - before for parent, _ in level])
            self._add_index(f"factor_{k}", [factor for _, factor in level])
            first, before = first + count, first
        self._add_index("term_own", [a for a, _ in self.terms])
        self._add_index("term_node", [p for _, p in self.terms])

    def extra_repr(self) -> str:
        shape = f"ℝ^{{{self.tokens}×{self.d}}} → ℝ^{{{self.tokens}×{self.width}}}"
        return f"{shape}, {len(self.terms)} terms, d' = {self.latent_dimension}, {self.arithmetic}"


def _depths(products: Sequence[Sequence[int]]) -> list[int]:
    """The number of nodes with 1, 2, … factors; an `InputError` if they are not in this order."""
    depth = [0]
    for parent, _ in products:
        depth.append(depth[parent] + 1)
    if depth != sorted(depth):
        raise InputError("SymmetricSumformer: expected products ordered by their number of factors")
    return [depth.count(k) for k in range(1, depth[-1] + 1)]

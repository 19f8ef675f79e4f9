"""A Sumformer whose features are local: masses on a mesh, as in particle–mesh methods.

φ(y)      = (b(y) p_t(v) Π_c ℓ_{j_c}(y))_{t, j}     w nodes of each coordinate's mesh, 0 on all others (`mesh.py`)
Σ         = Σ_k φ(x_k)                               added group by group, in any order inside a group of tokens
V_t(x)    = Σ_i Π_c ℓ_{i_c}(x) · Σ_j K(i − j) Σ_{t,j}/n  ≈  mean_k b(x_k) p_t(v_k) K(x − x_k)
ψ(x, Σ)   = the target with every reduction replaced by Σ_t a_t(x) V_t(x) (`reduced_expression.py`)

K(i − j) are the kernel's values at differences of nodes, the only parameters. The sum over j happens once for each
sequence; a token costs w^k numbers however sharp the kernel is, where Chebyshev features are all d' of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.algebra.waves import waves
from sumformer.errors import InputError
from sumformer.nn.arithmetics import dtypes_of
from sumformer.nn.box_features import slabs
from sumformer.nn.contraction import contract_rows
from sumformer.nn.convolution import convolve
from sumformer.nn.expression_parts import Channel
from sumformer.nn.expression_readings import ExpressionReadings
from sumformer.nn.frequencies import lengths
from sumformer.nn.mesh_parts import MeshKernel, MeshProduct
from sumformer.nn.mesh_transfer import Places
from sumformer.nn.network_operations import NetworkOperations, chebyshev_table
from sumformer.nn.reduced_expression import ReducedExpression
from sumformer.nn.summary import Summary

BATCH_ELEMENTS = 2**22  # masses of all sequences that are held at a time, by blocks up to ten times as many numbers


class MeshSumformer(ReducedExpression, ExpressionReadings):
    """(batch, n, d) → (batch, n, width of the expression).

    config.json holds the arguments, `type` "MeshSumformer":
      expression, d         the target; the width of a token
      centre, radius        d exact rationals each, as strings
      arithmetic            "float64" or "mixed" (float32 in and out, float64 inside)
      group                 tokens that are added in any order; the groups' sums are added one after another
      channels              {"factor"}: b(y)
      kernels               {"expression", "coordinates", "intervals", "width", "sums"}: K, a function of x − y in
                            these coordinates, m intervals in each, the stencil's w, which is even, and whether the
                            sum over j is of "pairs" of nodes or by "frequencies" (`frequencies.py`)
      products              {"kernels"}: kernels of different coordinates
      reductions            {"reduction", "components"}: for each coordinate its terms, {"own", "channel",
                            "polynomial", "product"}: a(x), b, p in Chebyshev polynomials of v = (y − centre)/radius
    model.safetensors holds `samples.g` for each kernel, in float64, of shape (2G_1 − 1, …), G = m + w − 1: at
    (e_1, …) K's value where x_c − y_c = (e_c − G_c + 1)·2·radius_c/m_c.
    """

    groups_in_a_row = True  # not a tree

    def __init__(
        self,
        expression: str,
        d: int,
        centre: Sequence[str],
        radius: Sequence[str],
        arithmetic: str,
        group: int,
        channels: Sequence[dict[str, Any]],
        kernels: Sequence[dict[str, Any]],
        products: Sequence[dict[str, Any]],
        reductions: Sequence[dict[str, Any]],
    ) -> None:
        super().__init__()
        self.inside, self.outside = dtypes_of(arithmetic, "MeshSumformer")
        if self.inside != torch.float64 or group < 2:
            raise InputError("MeshSumformer: expected arithmetic float64 or mixed, and groups of at least 2 tokens")
        self.expression, self.d, self.centre, self.radius = expression, d, list(centre), list(radius)
        self.arithmetic, self.group, self.channels, self.kernels = arithmetic, group, list(channels), list(kernels)
        self.products, self.reductions = list(products), list(reductions)
        self._channels = [Channel.read({**c, "support": []}, d) for c in channels]
        self.mesh_kernels = [MeshKernel.read(k, d) for k in kernels]
        self.mesh_products = [MeshProduct.read(p, self.mesh_kernels) for p in products]
        self._read_expression(expression, reductions, len(channels), self.mesh_products)
        self.latent_dimension = sum(p.size for p in self.mesh_products)  # d'
        shapes = [k.differences for k in self.mesh_kernels]
        self.samples = nn.ParameterList(nn.Parameter(torch.zeros(s, dtype=self.inside)) for s in shapes)
        polynomials = [p for product in self.mesh_products for _, p in product.series]
        self.degrees = [max([0, *(gamma[c] for p in polynomials for gamma, _ in p)]) for c in range(d)]
        self._add_box()
        for length in sorted({n for k in self.mesh_kernels if k.by_frequencies for n in lengths(k.shape)}):
            self._derive(f"wave_{length}", waves(length), self.inside)

    # ---- φ and Σ

    def _summarise(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
        z, w = self._padded(z.to(self.inside), keep), self._weights(z, weights, keep)
        return Summary(self._by_groups(z, w), w.double().sum(dim=1))

    def _by_groups(self, z: Tensor, w: Tensor) -> Tensor:
        """Masses of groups of tokens, added up; compiled code, which knows no n, makes all groups at once."""
        if not torch.compiler.is_compiling():
            pieces = zip(torch.split(z, self.group, dim=1), torch.split(w, self.group, dim=1), strict=True)
            return reduce(torch.add, (self._masses(piece, weight) for piece, weight in pieces))
        groups = (z.shape[1] + self.group - 1) // self.group
        first = torch.arange(z.shape[0], device=z.device).unsqueeze(1) * groups
        belongs = first + torch.arange(z.shape[1], device=z.device) // self.group
        found = self._masses(z, w, belongs, z.shape[0] * groups)
        return found.reshape(z.shape[0], groups, self.latent_dimension).sum(1)

    def _masses(self, z: Tensor, w: Tensor, belongs: Tensor | None = None, sums: int = 0) -> Tensor:
        """Σ over a group of tokens, (batch, n, d) → (batch, d'); or as many `sums` as the tokens belong to."""
        t = self._centred(z)
        blocks = []
        for product in self.mesh_products:
            values = self._series(product, z, t) * w.unsqueeze(-1)
            if belongs is not None:
                blocks.append(Places.of(t, product.meshes, product.coordinates).added(values, belongs, sums).flatten(1))
            elif product.parts:
                blocks.append(Places.of(t, product.meshes, product.coordinates).masses(values).flatten(1))
            else:
                blocks.append(values.sum(1))
        return torch.cat(blocks, dim=-1) if blocks else z.new_zeros(sums if sums else z.shape[0], 0)

    def _series(self, product: MeshProduct, y: Tensor, t: Tensor) -> Tensor:
        """b(y) p(v) for each series of the product, (batch, n, series)."""
        tables = [chebyshev_table(t[..., c], self.degrees[c]) for c in range(self.d)]
        number, columns = NetworkOperations(self.inside, y.device).number, []
        for channel, polynomial in product.series:
            value, b = torch.zeros_like(t[..., 0]), self._channels[channel]
            factor = torch.ones_like(value) if b.is_one else self._scalar(b.factor, y=y)
            for gamma, coefficient in polynomial:
                term = factor * number(float(coefficient))  # b first: small T must not underflow where b is large
                for c, degree in enumerate(gamma):
                    term = term * tables[c][..., degree] if degree else term
                value = value + term
            columns.append(value)
        return torch.stack(columns, dim=-1)

    def _features(self, z: Tensor) -> Tensor:
        rows = z.to(self.inside).reshape(-1, 1, self.d)
        return torch.unflatten(self._masses(rows, torch.ones_like(rows[..., 0])), 0, z.shape[:2])

    def _query_size(self) -> int:
        return max(1, self.latent_dimension)

    def _read(self, x: Tensor, keep: Tensor | None, is_causal: bool) -> Tensor:
        """Every sequence has a mesh of its own: of a large batch some at a time."""
        some = max(1, BATCH_ELEMENTS // max(1, self.latent_dimension))
        if torch.compiler.is_compiling() or some >= x.shape[0]:
            return super()._read(x, keep, is_causal)
        masks = [None] * x.shape[0] if keep is None else torch.split(keep, some)
        pieces = zip(torch.split(x, some), masks, strict=False)
        return torch.cat([super(MeshSumformer, self)._read(piece, seen, is_causal) for piece, seen in pieces])

    # ---- ψ

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for queries x (batch, n, d), which need not be the sources."""
        contracted = self._contract(state)
        x = x.to(self.inside)
        widest = max([1, *(p.series_count * (p.meshes[-1].width if p.parts else 1) for p in self.mesh_products)])
        out = [self._psi(piece, state, contracted) for (piece,) in slabs(widest, x)]
        return torch.cat(out, dim=1).to(self.outside)

    def _contract(self, state: Summary) -> list[Tensor]:
        """Σ → for each product Σ_j K(i − j) Σ_j/n on its nodes, (batch, nodes…, series)."""
        mean = state.total / state.count.unsqueeze(-1).to(self.inside)
        out = []
        for product, block in zip(
            self.mesh_products, torch.split(mean, [p.size for p in self.mesh_products], dim=-1), strict=True
        ):
            q = torch.unflatten(block, -1, (*product.shape, product.series_count))
            first = 1
            for kernel, part in zip(product.kernels, product.parts, strict=True):
                axes = list(range(first, first + len(part.shape)))
                front = q.movedim(axes, list(range(len(axes))))
                known = partial(self._wave, q) if part.by_frequencies else None
                moved = convolve(self.samples[kernel], front.flatten(len(axes)), known).reshape(front.shape)
                q, first = moved.movedim(list(range(len(axes))), axes), first + len(axes)
            out.append(q)
        return out

    def _wave(self, like: Tensor, length: int) -> Tensor:
        return self._derived(f"wave_{length}", like)

    def _means(self, x: Tensor, contracted: list[Tensor]) -> list[Tensor]:
        """For each product the mean of its series at x, (batch, s or 1, series)."""
        t = self._centred(x)
        out = []
        for product, q in zip(self.mesh_products, contracted, strict=True):
            if not product.parts:
                out.append(q.unsqueeze(1))
                continue
            q = q.expand(x.shape[0], *q.shape[1:])
            out.append(Places.of(t, product.meshes, product.coordinates).values(q))
        return out

    def _own_means(self, x: Tensor) -> list[Tensor]:
        """Σ_{i,j} ℓ_i(x) ℓ_j(x) K(i − j), the weights' products added up for each difference first."""
        t = self._centred(x)
        out = []
        for product in self.mesh_products:
            value = self._series(product, x, t)
            for kernel, part in zip(product.kernels, product.parts, strict=True):
                weights = Places.of(t, part.meshes, part.coordinates).weights
                rows = [_products_by_difference(w).mT for w in weights]
                middle = tuple(slice(m.nodes - m.width, m.nodes + m.width - 1) for m in part.meshes)
                window = self.samples[kernel][middle].unsqueeze(0).unsqueeze(-1)
                value = value * contract_rows(rows, window.expand(x.shape[0], *window.shape[1:]))
            out.append(value)
        return out

    def extra_repr(self) -> str:
        shape = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}"
        nodes = " + ".join(" × ".join(map(str, p.shape)) or "1" for p in self.mesh_products)
        return f"{shape}, {self.expression}, d' = {self.latent_dimension} ({nodes} nodes), {self.arithmetic}"


def _products_by_difference(weights: Tensor) -> Tensor:
    """(…, w) → (…, 2w − 1): at δ + w − 1 the sum of ℓ_i ℓ_j with i − j = δ."""
    width = weights.shape[-1]
    out = []
    for delta in range(1 - width, width):
        above, below = weights[..., max(delta, 0) : width + min(delta, 0)], weights[..., max(-delta, 0) :]
        out.append((above * below[..., : width - abs(delta)]).sum(-1))
    return torch.stack(out, dim=-1)

"""The Sumformer that Theorem 4.1 constructs: φ evaluates Chebyshev features of y, ψ evaluates the target's own formula.

φ(y)        = (b(y)·T_β(v))_{b, β},            v = (y − centre)/radius ∈ [−1, 1]^d, b a channel
Σ           = Σ_k φ(x_k), summed by the fixed tree of `token_sum`
V_t(x)      = Σ_α T_α(u) · [A (p_t ⊛ Σ/n)]_α ≈ mean_k b(x_k) p_t(v_k) K(x, x_k),     u = (x − centre)/radius
ψ(x, Σ)     = the target with every reduction replaced by Σ_t a_t(x) V_t(x), times n for a sum,
              less the own term for …_others

p ⊛ Σ multiplies features by T_γ T_β = mean over signs of T_{|β±γ|}. A is the product over kernels of their
coefficient matrices, the only parameters. The contraction with Σ happens once per sequence; the cost is O(n·d'), and no
buffer holds d' numbers for each of n tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.arithmetics import dtypes_of
from sumformer.nn.box_features import slabs
from sumformer.nn.contraction import contract_rows, kernel_rows
from sumformer.nn.expression_kernels import kernels_for
from sumformer.nn.expression_parts import Channel, Kernel, Product
from sumformer.nn.expression_readings import ExpressionReadings
from sumformer.nn.reduced_expression import ReducedExpression
from sumformer.nn.summary import Summary
from sumformer.nn.token_sum import in_groups, levels, sum_groups
from sumformer.targets.domain import MAX_TOKENS


class ExpressionSumformer(ReducedExpression, ExpressionReadings):
    """(batch, n, d) → (batch, n, width of the expression)."""

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
        self.inside, self.outside = dtypes_of(arithmetic, "ExpressionSumformer")
        if group < 2:
            raise InputError(f"ExpressionSumformer: expected groups of at least 2 tokens, got {group}")
        self.expression, self.d, self.centre, self.radius = expression, d, list(centre), list(radius)
        self.arithmetic, self.group, self.channels, self.kernels = arithmetic, group, list(channels), list(kernels)
        self.products, self.reductions = list(products), list(reductions)
        self._channels = [Channel.read(c, d) for c in channels]
        self.latent_dimension = sum(len(c.support) for c in self._channels)  # d'
        self._kernels = [Kernel.read(k) for k in kernels]
        self._products = [Product.read(p, self._kernels) for p in products]
        self._read_expression(expression, reductions, len(channels), self._products)
        shapes = [(k.x_size, k.y_size) for k in self._kernels]
        self.coefficients = nn.ParameterList(nn.Parameter(torch.zeros(s, dtype=self.inside)) for s in shapes)
        self._add_constants()
        self._widest = self._numbers_held()

    # ---- φ and Σ

    def _summarise(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
        depth = levels(MAX_TOKENS, self.group) - 1
        if (fast := kernels_for(self, z, weights)) is not None:
            return fast.summarise(self, z, weights, keep, depth + 1)
        z, w = self._padded(z.to(self.inside), keep), self._weights(z, weights, keep)
        count = w.double().sum(dim=1)  # exact for multiplicities up to 2^53, whatever the arithmetic inside
        short = not torch.compiler.is_compiling() and 0 < z.shape[1] < self.group  # one group, not filled up with zeros
        group = z.shape[1] if short else self.group
        pieces = slabs(self._widest, z, w, group=self.group)
        partial = [self._partial_sums(piece, weight, group) for piece, weight in pieces]
        return Summary(sum_groups(torch.cat(partial, dim=1), self.group, depth), count)

    def _partial_sums(self, z: Tensor, w: Tensor, group: int) -> Tensor:
        """(batch, s, d) → (batch, ⌈s/group⌉, d'): one row per group of tokens."""
        tables = self._tables(z, self.y_degrees)
        blocks = []
        for i, channel in enumerate(self._channels):
            factor = w if channel.is_one else w * self._scalar(channel.factor, y=z)
            left, right = (in_groups(v, group, spare=True) for v in self._sides(i, tables, factor))
            outer = (left.transpose(2, 3) @ right).flatten(2)
            blocks.append(outer.index_select(-1, self._constant(f"feature_{i}", z)))
        return torch.cat(blocks, dim=-1) if blocks else z.new_zeros(z.shape[0], 1, 0)

    def _sides(self, i: int, tables: list[Tensor], factor: Tensor) -> tuple[Tensor, Tensor]:
        """T of the first coordinate and of the others, the narrower of the two times b and the weight."""
        left, right = tables[0], self._suffixes(i, tables)
        if right.shape[-1] < left.shape[-1]:
            return left, right * factor.unsqueeze(-1)
        return left * factor.unsqueeze(-1), right

    def _suffixes(self, i: int, tables: list[Tensor]) -> Tensor:
        """The distinct products of T over all coordinates but the first that channel i needs."""
        right = tables[0].new_ones(*tables[0].shape[:2], 1)
        for c in range(1, self.d):
            column = tables[c].index_select(-1, self._constant(f"suffix_{i}_{c}", tables[c]))
            right = column if c == 1 else right * column
        return right

    # ---- ψ

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for queries x (batch, n, d), which need not be the sources."""
        contracted = self._contract(state)
        if (fast := kernels_for(self, x, state.total, state.count)) is not None:
            return fast.psi_of(self, x, state.count, contracted)
        x = x.to(self.inside)
        pieces = slabs(self._widest, x, group=self.group)
        out = [self._psi(piece, state, contracted) for (piece,) in pieces]
        return torch.cat(out, dim=1).to(self.outside)

    # ---- the mean of each series, contracted with the kernels' coefficients

    def _contract(self, state: Summary) -> list[Tensor]:
        """Σ → for each product the tensor Q (batch, X_1, …, X_g, series)."""
        return self._contract_mean(state.total / state.count.unsqueeze(-1).to(self.inside))

    def _contract_mean(self, mean: Tensor) -> list[Tensor]:
        out = []
        extended = torch.cat([mean, mean.new_ones(mean.shape[0], 1)], dim=-1)  # the last column is T_0 of channel 1
        for j, product in enumerate(self._products):
            q = extended.index_select(-1, self._constant(f"gather_{j}", mean)) * self._constant(f"scale_{j}", mean)
            q = torch.unflatten(q, -1, (-1, self._widths[j])).sum(-1)  # p ⊛ Σ: (batch, series · support)
            q = torch.unflatten(q, -1, (product.series_count, -1))
            support = self._constant(f"support_{j}", q)
            full = q.new_zeros(*q.shape[:2], prod(product.y_shape)).index_copy(-1, support, q)
            full = torch.unflatten(full, -1, product.y_shape)
            for kernel in product.kernels:
                full = torch.tensordot(full, self.coefficients[kernel].T, dims=([2], [0]))
            out.append(full.movedim(1, -1))
        return out

    def _means(self, x: Tensor, contracted: list[Tensor]) -> list[Tensor]:
        """For each product the mean of its series at x, (batch, s or 1, series)."""
        tables = self._tables(x, self.x_degrees)
        pairs = zip(self._products, contracted, strict=True)
        return [contract_rows(kernel_rows(product.parts, tables), q) for product, q in pairs]

    def _own_means(self, x: Tensor) -> list[Tensor]:
        """The series at the own token alone, Σ replaced by φ(x_i): what …_others leave out."""
        batch, s = x.shape[:2]
        ones = x.new_ones(batch * s, 1)
        flat = x.reshape(batch * s, 1, self.d)
        means = self._means(flat, self._contract_mean(self._single(flat, ones)))
        return [m.reshape(batch, s, m.shape[-1]) for m in means]

    def _features(self, z: Tensor) -> Tensor:
        rows = z.to(self.inside).reshape(-1, 1, self.d)
        return torch.unflatten(self._single(rows, rows.new_ones(rows.shape[0], 1)), 0, z.shape[:2])

    def _query_size(self) -> int:
        return max([1, *(max(p.x_total, prod(p.y_shape)) * p.series_count for p in self._products)])

    def _single(self, z: Tensor, w: Tensor) -> Tensor:
        """φ of one token per row, (rows, d')."""
        tables = self._tables(z, self.y_degrees)
        blocks = []
        for i, channel in enumerate(self._channels):
            factor = w if channel.is_one else w * self._scalar(channel.factor, y=z)
            left, right = self._sides(i, tables, factor)
            outer = left.transpose(1, 2) @ right
            blocks.append(outer.flatten(1).index_select(-1, self._constant(f"feature_{i}", z)))
        return torch.cat(blocks, dim=-1) if blocks else z.new_zeros(z.shape[0], 0)

    # ---- small things

    def _numbers_held(self) -> int:
        """The most for a token at a time, in φ and in ψ."""
        features = [len(c.suffixes) + self.y_degrees[0] + 1 for c in self._channels]
        whole = any(r.kind.endswith("others") for r in self._reductions)  # the own term needs all of Q per token
        rows = [p.x_total * p.series_count if whole else p.row_width for p in self._products]
        return max([1, *features, *rows])

    def _add_constants(self) -> None:
        """Everything that follows from the configuration: index maps and rounded constants, not saved."""
        self.y_degrees = [max([0, *(c.degrees[k] for c in self._channels)]) for k in range(self.d)]
        self.x_degrees = [max([0, *(k.x_degree(c) for k in self._kernels)]) for c in range(self.d)]
        self._add_box()
        for i, channel in enumerate(self._channels):
            self._add_index(f"feature_{i}", channel.flat_index())
            for c in range(1, self.d):
                self._add_index(f"suffix_{i}_{c}", channel.suffix_column(c))
        offsets = [sum(len(c.support) for c in self._channels[:i]) for i in range(len(self._channels))]
        self._widths = []
        for j, product in enumerate(self._products):
            gather, scale, width = product.shift_plan(self._channels, offsets, self.latent_dimension)
            self._widths.append(width)
            self._add_index(f"gather_{j}", gather)
            self._add_index(f"support_{j}", product.support_index())
            self._add_reals(f"scale_{j}", scale)

    def extra_repr(self) -> str:
        shape = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}"
        return f"{shape}, {self.expression}, d' = {self.latent_dimension}, {self.arithmetic}"

"""ψ(x, Σ) = the target with every reduction replaced by Σ_t a_t(x) V_t(x), times n for a sum, less the own term for
…_others.

V_t(x) ≈ mean_k b(x_k) p_t(v_k) K(x, x_k) is what a subclass makes of Σ: a series (b, p_t) of a product of kernels K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.box_features import BoxFeatures
from sumformer.nn.expression_parts import Reduction, SeriesOfProduct
from sumformer.nn.network_operations import NetworkOperations
from sumformer.nn.program import Program
from sumformer.nn.summary import Summary
from sumformer.targets import Reduce, parse, to_source
from sumformer.targets import reductions as all_reductions


class ReducedExpression(BoxFeatures, ABC):
    """A subclass gives V_t from Σ, for all series of each product; the formula around it is here."""

    width: int
    _program: Program
    _own: list[Program]
    _reductions: list[Reduction]

    @abstractmethod
    def _means(self, x: Tensor, contracted: list[Tensor]) -> list[Tensor]:
        """For each product the mean of its series at x, (batch, s or 1, series)."""

    @abstractmethod
    def _own_means(self, x: Tensor) -> list[Tensor]:
        """The series at the own token alone, Σ replaced by φ(x_i): what …_others leave out."""

    @abstractmethod
    def _contract(self, state: Summary) -> list[Tensor]:
        """Σ with the kernels applied to it, once for each sequence: what `_means` reads at every x."""

    def _read_expression(
        self,
        expression: str,
        reductions: Sequence[dict[str, Any]],
        channels: int,
        products: Sequence[SeriesOfProduct],
    ) -> None:
        """The formula and its reductions, whose terms add their series to the `products`."""
        tree = parse(expression, self.d)
        self._reductions = []
        places: dict[Reduce, int] = {}
        own: dict[str, Program] = {}
        for data in reductions:
            reduction = Reduction.read(data, self.d, channels, products, places, own)
            places[reduction.node] = len(self._reductions)
            self._reductions.append(reduction)
        missing = [to_source(part) for part in all_reductions(tree) if part not in places]
        if missing:
            raise InputError(f"{type(self).__name__}: no terms are given for {', '.join(missing)}")
        self.width = tree.width
        self._program, self._own = Program(tree, places), list(own.values())

    def reduced(self, x: Tensor, state: Summary) -> list[Tensor]:
        """What stands in ψ for each reduction of the expression, inner ones first: (batch, n or 1, its width)."""
        return self._reduced(x.to(self.inside), state, self._contract(state))

    def _psi(self, x: Tensor, state: Summary, contracted: list[Tensor]) -> Tensor:
        ops, reduced = NetworkOperations(self.inside, x.device), self._reduced(x, state, contracted)
        return self._program.run(ops, x, None, reduced).expand(*x.shape[:2], self.width)

    def _reduced(self, x: Tensor, state: Summary, contracted: list[Tensor]) -> list[Tensor]:
        ops = NetworkOperations(self.inside, x.device)
        means = self._means(x, contracted)
        count = state.count[:, None, None].to(self.inside)
        reduced: list[Tensor] = []
        factors: dict[int, Tensor] = {}
        for reduction in self._reductions:
            own_means = self._own_means(x) if reduction.kind.endswith("others") else None
            columns = []
            for terms in reduction.components:
                total, own = x.new_zeros(()), x.new_zeros(())
                for term in terms:
                    if term.own not in factors:
                        factors[term.own] = self._own[term.own].run(ops, x, None, reduced)
                    factor = factors[term.own]
                    total = total + factor * means[term.product][..., term.series, None]
                    if own_means is not None:
                        own = own + factor * own_means[term.product][..., term.series, None]
                columns.append(_over_tokens(reduction.kind, count, total, own).expand(*x.shape[:2], 1))
            reduced.append(ops.cat(columns))
        return reduced

    def _scalar(self, factor: Program, y: Tensor) -> Tensor:
        return factor.run(NetworkOperations(self.inside, y.device), None, y, [])[..., 0].expand(y.shape[:2])


def _over_tokens(kind: str, count: Tensor, mean: Tensor, own: Tensor) -> Tensor:
    """mean | n·mean | n·mean − own | (n·mean − own)/(n − 1)."""
    if kind == "mean":
        return mean
    if kind == "sum":
        return count * mean
    rest = count * mean - own
    return rest if kind == "sum_others" else rest / (count - 1)

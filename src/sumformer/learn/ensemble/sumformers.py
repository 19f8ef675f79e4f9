"""M Sumformers as one:  S_m(X)_i = ψ_m(x_i, Σ_k φ_m(x_k)),  every product over all members at once.

φ is a batched MLP, or the fixed monomials of A 4.1 shared by all. Members may differ in d, d' and d_out: the narrower
ones are padded by zero rows and columns, which stay zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, ShapeError
from sumformer.learn.ensemble.flat_parameters import (
    Layer,
    LayerShape,
    count,
    layers,
    linears_of,
    mlp_shapes,
    read,
    write,
)
from sumformer.learn.ensemble.member import Member
from sumformer.nn.mlp import activation_module
from sumformer.nn.polynomial_features import PolynomialFeatures
from sumformer.nn.sumformer import Sumformer, mlp_sumformer, polynomial_sumformer


@dataclass(frozen=True)
class Parts:
    """φ (no layers if it is fixed), and ψ(x, Σ) = ψ'(σ(x·from_token + Σ·from_sum)) with the layers `psi` of ψ'."""

    phi: list[Layer]
    from_token: Layer
    from_sum: Layer
    psi: list[Layer]


class SumformerEnsemble(nn.Module):
    """`degree`: None for MLP Sumformers, else the total degree of the Polynomial Sumformers' monomials."""

    def __init__(
        self,
        members: Sequence[Member],
        hidden: int = 50,
        depth: int = 5,
        activation: str = "relu",
        mean: bool = False,
        degree: int | None = None,
    ) -> None:
        super().__init__()
        if not members:
            raise InputError("SumformerEnsemble: expected at least one member")
        self.members = tuple(members)
        self.hidden, self.depth, self.activation, self.mean, self.degree = hidden, depth, activation, mean, degree
        self.d = max(member.d for member in members)
        self.d_latent = max(member.d_latent for member in members)
        self.d_out = max(member.d_out for member in members)
        self.sigma = activation_module(activation)
        self.monomials = None if degree is None else self._monomials(degree)
        self._phi = [] if degree is not None else mlp_shapes(self.d, self.d_latent, hidden, depth)
        psi = [LayerShape(self.d, hidden), LayerShape(self.d_latent, hidden, bias=False)]
        self._shapes = [*self._phi, *psi, *mlp_shapes(hidden, self.d_out, hidden, depth - 1)]
        self.flat = nn.Parameter(torch.zeros(len(self.members), count(self._shapes)))
        for row, member in zip(self.flat.detach(), self.members, strict=True):
            write(row, self._shapes, linears_of(self.start(member)))

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, n, d) → (M, batch, n, d_out)."""
        if x.dim() != 4 or x.shape[0] != len(self.members) or x.shape[-1] != self.d:
            raise ShapeError("SumformerEnsemble", f"({len(self.members)}, batch, n, {self.d})", x.shape)
        return self.evaluate(self.flat, x)

    def evaluate(self, flat: Tensor, x: Tensor) -> Tensor:
        """The same for the members whose weights are the rows of `flat`."""
        M, B, n, _ = x.shape
        tokens = x.reshape(M, B * n, self.d)
        parts = self.parts(flat)
        if self.monomials is not None:
            total = self.monomials(x).sum(2)
        else:
            h = tokens
            for layer in parts.phi[:-1]:
                h = self.sigma(layer(h))
            # the last layer is affine: Σ_k (W h_k + b) = W Σ_k h_k + n b, n times cheaper
            last = parts.phi[-1]
            assert last.bias is not None
            total = torch.baddbmm(last.bias, h.view(M, B, n, -1).sum(2), last.weight, beta=n)
        if self.mean:
            total = total / n
        h = parts.from_token(tokens).view(M, B, n, -1) + parts.from_sum(total).unsqueeze(2)
        h = self.sigma(h).view(M, B * n, -1)
        for layer in parts.psi[:-1]:
            h = self.sigma(layer(h))
        return parts.psi[-1](h).view(M, B, n, self.d_out)

    def parts(self, flat: Tensor) -> Parts:
        """The layers of the members whose weights are the rows of `flat`, as views."""
        every, k = layers(flat, self._shapes), len(self._phi)
        return Parts(every[:k], every[k], every[k + 1], every[k + 2 :])

    def start(self, member: Member) -> Sumformer:
        """The member's own model as its seed makes it."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(member.seed)
            if self.degree is not None:
                return polynomial_sumformer(
                    member.d, self.degree, member.d_out, self.hidden, self.depth, self.activation, mean=self.mean
                )
            return mlp_sumformer(
                member.d, member.d_latent, member.d_out, self.hidden, self.depth, self.activation, self.mean
            )

    def member(self, m: int) -> Sumformer:
        """Member m alone, with its weights as they are now."""
        model = self.start(self.members[m])
        read(self.flat[m].detach().cpu(), self._shapes, linears_of(model))
        return model

    def _monomials(self, degree: int) -> PolynomialFeatures:
        monomials = PolynomialFeatures(self.d, degree)
        wrong = [m for m in self.members if m.d != self.d or m.d_latent != monomials.d_out]
        if wrong:
            raise InputError(
                f"SumformerEnsemble: monomials of degree {degree} in d = {self.d} give d' = {monomials.d_out}; "
                f"every member must have these, got {wrong[0]}"
            )
        return monomials

    def extra_repr(self) -> str:
        return f"{len(self.members)} × (ℝ^{{n×{self.d}}} → ℝ^{{n×{self.d_out}}}), d' ≤ {self.d_latent}"

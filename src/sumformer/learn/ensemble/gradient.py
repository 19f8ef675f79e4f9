"""∂θ of  Σ_m w_m ‖S_m(X_m) − Y_m‖²  for a block of members: by autograd, and by hand in memory that is made once.

By hand, with z_l = h_{l−1} W_l + b_l, h_l = σ(z_l), δ_l = ∂z_l:  ∂W_l = h_{l−1}ᵀδ_l,  δ_{l−1} = δ_l W_lᵀ ⊙ σ'(z_{l−1}),
and the sum over tokens gives its gradient to each of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.learn.ensemble.affine import Affine
from sumformer.learn.ensemble.derivatives import Activated
from sumformer.learn.ensemble.sumformers import SumformerEnsemble


def gradient_by_autograd(ensemble: SumformerEnsemble, flat: Tensor, X: Tensor, Y: Tensor, w: Tensor) -> Tensor:
    """(c, P) for the members whose weights are the rows of the leaf `flat`; w (c,)."""
    loss = ((ensemble.evaluate(flat, X) - Y).square().sum((1, 2, 3)) * w).sum()
    (gradient,) = torch.autograd.grad(loss, flat)
    return gradient


class GradientByHand:
    """The same for X (c, batch, n, d) of one shape; the result is overwritten by the next call."""

    def __init__(self, ensemble: SumformerEnsemble, flat: Tensor, batch: int, n: int) -> None:
        self.c, self.batch, self.n, self.rows = flat.shape[0], batch, n, batch * n
        self.monomials, self.share = ensemble.monomials, 1 / n if ensemble.mean else 1.0
        self.result = torch.zeros_like(flat)
        at, to = ensemble.parts(flat), ensemble.parts(self.result)
        wide, pooled = (self.c, self.rows, ensemble.hidden), (self.c, batch, ensemble.hidden)
        make, sigma = flat.new_empty, ensemble.activation
        self.phi = [Affine(*pair, self.rows) for pair in zip(at.phi[:-1], to.phi[:-1], strict=True)]
        self.phi_sigma = [Activated(sigma, wide, flat) for _ in self.phi]
        # the last layer of φ is affine: Σ_k (W h_k + b) = W Σ_k h_k + n b, n times cheaper
        self.last = Affine(at.phi[-1], to.phi[-1], batch, self.share, self.share * n) if at.phi else None
        self.from_token = Affine(at.from_token, to.from_token, self.rows)
        self.from_sum = Affine(at.from_sum, to.from_sum, batch)
        self.psi = [Affine(*pair, self.rows) for pair in zip(at.psi[:-1], to.psi[:-1], strict=True)]
        self.psi.append(Affine(at.psi[-1], to.psi[-1], self.rows, turn=True))
        self.psi_sigma = [Activated(sigma, wide, flat) for _ in self.psi]
        self.deltas = make(wide), make(wide)
        self.pooled, self.d_pooled, self.d_total = make(pooled), make(pooled), make(self.c, batch, ensemble.d_latent)

    @torch.no_grad()
    def __call__(self, X: Tensor, Y: Tensor, w: Tensor) -> Tensor:
        x = X.view(self.c, self.rows, -1)
        gap = self._forward(X, x).sub_(Y.view(self.c, self.rows, -1)).mul_((2 * w)[:, None, None])
        delta = self._down(gap, self.psi, self.psi_sigma)
        self.from_token.backward(delta)
        torch.sum(self._by_sequence(delta), 2, out=self.d_pooled)
        if self.last is None:
            self.from_sum.backward(self.d_pooled)
            return self.result
        self.from_sum.backward(self.d_pooled, self.d_total)
        self.last.backward(self.d_total, self.d_pooled)
        self._by_sequence(delta).copy_(self.d_pooled.unsqueeze(2))
        delta = self.phi_sigma[-1].backward(delta)
        delta = self._down(delta, self.phi[1:], self.phi_sigma[:-1])
        self.phi[0].backward(delta)
        return self.result

    def _forward(self, X: Tensor, x: Tensor) -> Tensor:
        z = self.from_token.forward(x)
        self._by_sequence(z).add_(self.from_sum.forward(self._total(X, x)).unsqueeze(2))
        for affine, sigma in zip(self.psi, self.psi_sigma, strict=True):
            z = affine.forward(sigma.forward(z))
        return z

    def _total(self, X: Tensor, x: Tensor) -> Tensor:
        """Σ_k φ(x_k), or the mean."""
        if self.last is None:
            assert self.monomials is not None
            features: Tensor = self.monomials(X)
            return features.sum(2).mul_(self.share)
        h = x
        for affine, sigma in zip(self.phi, self.phi_sigma, strict=True):
            h = sigma.forward(affine.forward(h))
        return self.last.forward(torch.sum(self._by_sequence(h), 2, out=self.pooled))

    def _down(self, delta: Tensor, affines: list[Affine], sigmas: list[Activated]) -> Tensor:
        """From ∂z of the last layer to ∂z of the layer below the first; `sigmas[l]` stands before `affines[l]`."""
        for affine, sigma in zip(reversed(affines), reversed(sigmas), strict=True):
            into = self.deltas[1] if delta is self.deltas[0] else self.deltas[0]
            affine.backward(delta, into)
            delta = sigma.backward(into)
        return delta

    def _by_sequence(self, rows: Tensor) -> Tensor:
        return rows.view(self.c, self.batch, self.n, -1)

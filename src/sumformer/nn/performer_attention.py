"""A 2.6: head(X) = a(X W_Q)(a(X W_K)ᵀ(X W_V)), a the positive random features of `random_features.py`. Cost O(nk).

`PerformerAttention` is this head as defined: no row normalisation, no 1/√d. `FavorAttention` is the one of practice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.nn.inputs import check_piece
from sumformer.nn.layer import check_positive
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.prefix_attention import FeatureState, prefix_attention
from sumformer.nn.random_features import iid_omega, log_positive_features, orthogonal_omega, positive_features
from sumformer.nn.scaling import scaled


class FeatureAttention(MultiHead, ABC):
    """What the two share: a(q)·a(k) summed over all keys, or in causal order over those so far."""

    omega: Tensor
    k: int
    seed: int

    @abstractmethod
    def prefix(self, x: Tensor, state: FeatureState | None) -> tuple[Tensor, FeatureState]:
        """The heads in causal order, behind the tokens of `state`, and the state after x."""

    def causal_formula(self, x: Tensor) -> Tensor:
        return self.join(self.prefix(x, None)[0], x)

    def stream(self, x: Tensor, state: FeatureState | None = None) -> tuple[Tensor, FeatureState]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow."""
        check_piece(f"{type(self).__name__}.stream", x, self.width, state, FeatureState)
        heads, state = self.prefix(x, state)
        return self.join(heads, x), state

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, k={self.k}, seed={self.seed}"


class PerformerAttention(FeatureAttention):
    """a(X W_Q)(a(X W_K)ᵀ(X W_V)) per head, then W_O: on average Σ_j exp(q_i·k_j) v_j.

    ω, (k, d_head) ~ N(0, I), is drawn from `seed`, shared by the heads and saved with the weights.
    """

    def __init__(self, d_model: int, k: int, nhead: int = 1, d_head: int | None = None, seed: int = 0) -> None:
        super().__init__(d_model, nhead, d_head)
        check_positive("PerformerAttention", k=k)
        self.k, self.seed = k, seed
        self.register_buffer("omega", iid_omega(k, self.d_head, seed))

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        a_q, a_k = (positive_features(y, self.omega) for y in (self.queries(x), self.keys(x)))
        # Padding has value 0, and there is no normaliser for it to enter: `keep` is not needed.
        return self.join(a_q @ (a_k.mT @ self.values(x).to(a_k.dtype)), x)

    def prefix(self, x: Tensor, state: FeatureState | None) -> tuple[Tensor, FeatureState]:
        log_q, log_k = (log_positive_features(y, self.omega) for y in (self.queries(x), self.keys(x)))
        total, _, log_scale, state = prefix_attention(log_q, log_k, self.values(x), state)
        return total * scaled(log_scale.exp(), 1 / self.k), state


class FavorAttention(FeatureAttention):
    """FAVOR+: D⁻¹ a(Q)(a(K)ᵀV) with D = diag(a(Q) a(K)ᵀ1), Q = X W_Q / d^{1/4}, K = X W_K / d^{1/4}, V = X W_V.

    An estimate of softmax attention with 1/√d, d the size of a head (Choromanski et al. 2021). ω has orthogonal rows;
    it is drawn from `seed`, shared by the heads and saved with the weights.
    """

    def __init__(self, d_model: int, k: int, nhead: int = 1, d_head: int | None = None, seed: int = 0) -> None:
        super().__init__(d_model, nhead, d_head)
        check_positive("FavorAttention", k=k)
        self.k, self.seed = k, seed
        self.register_buffer("omega", orthogonal_omega(k, self.d_head, seed))

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return self.join(favor(self.queries(x), self.keys(x), self.values(x), self.omega, keep), x)

    def prefix(self, x: Tensor, state: FeatureState | None) -> tuple[Tensor, FeatureState]:
        quarter = self.d_head**-0.25
        log_q, log_k = (log_positive_features(scaled(y, quarter), self.omega) for y in (self.queries(x), self.keys(x)))
        total, normaliser, _, state = prefix_attention(log_q, log_k, self.values(x), state)
        return total / normaliser, state


def favor(q: Tensor, k: Tensor, v: Tensor, omega: Tensor, keep: Tensor | None = None) -> Tensor:
    """D⁻¹ a(q)(a(k)ᵀ v) after dividing q and k by d^{1/4}, in float32 or wider. `keep` (batch, n) marks the real keys.

    Feature i of the keys is divided by its largest value e^{m_i}, feature i of the queries multiplied by it, and each
    query by a constant that D⁻¹ cancels, e^{‖q‖²/2} among them: nothing overflows and D ≥ 1, with no ε added anywhere.
    Features are the largest tensors here, so they are changed in place; no product keeps its result for the gradient.
    """
    dtype, quarter = torch.promote_types(q.dtype, torch.float32), q.shape[-1] ** -0.25
    q, k, omega = q.to(dtype), k.to(dtype), scaled(omega.to(dtype), quarter).mT
    log_k = (k @ omega).to(dtype).sub_(scaled(k.square().sum(-1, keepdim=True), quarter**2 / 2))
    if keep is not None:
        log_k = log_k.masked_fill_(~keep[:, None, :, None], -torch.inf)
    m = log_k.detach().amax(-2, keepdim=True)
    m = torch.where(m == -torch.inf, 0.0, m)
    a_k, log_q = log_k.sub_(m).exp_(), (q @ omega).to(dtype).add_(m)
    a_q = log_q.sub_(log_q.detach().amax(-1, keepdim=True)).exp_()
    # The last column is the normaliser D.
    sums = a_q @ (a_k.mT @ functional.pad(v.to(dtype), (0, 1), value=1.0))
    return sums[..., :-1] / torch.where(sums[..., -1:] > 0, sums[..., -1:], 1.0)

"""A 2.5: head(X) = ρ((X W_Q)(E X W_K)ᵀ/√d) F X W_V,   E, F ∈ ℝ^{k×n}."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sumformer.nn.attend import attend
from sumformer.nn.layer import check_positive
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.normalisers import Normaliser, normaliser_or_softmax
from sumformer.nn.token_order import check_fits, ranks


class LinformerAttention(MultiHead):
    """Attention to k mixtures of the tokens instead of to the tokens. Cost O(nk).

    E and F are learned, shared by the heads and drawn from N(0, 1/k). They are stored for `n_max` tokens and read by
    rank among the real ones, which ties the layer to the order of tokens. d in √d is the size of a head.
    """

    no_causal_order = "E and F mix all tokens, later ones too, before any query sees them"

    def __init__(
        self,
        d_model: int,
        n_max: int,
        k: int,
        nhead: int = 1,
        d_head: int | None = None,
        normaliser: Normaliser | None = None,
        scale: bool = True,
    ) -> None:
        super().__init__(d_model, nhead, d_head)
        check_positive("LinformerAttention", n_max=n_max, k=k)
        self.n_max, self.k, self.scale = n_max, k, scale
        self.normaliser = normaliser_or_softmax("LinformerAttention", normaliser)
        self.E = nn.Parameter(torch.randn(k, n_max) * k**-0.5)
        self.F = nn.Parameter(torch.randn(k, n_max) * k**-0.5)

    @property
    def equivariant(self) -> bool:
        """Only when all columns of E are equal, and all columns of F: then every token is mixed in alike."""
        return all(bool((matrix == matrix[:, :1]).all()) for matrix in (self.E, self.F))

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        check_fits("LinformerAttention", x, keep, self.n_max)
        keys, values = self.keys(_mix(self.E, x, keep)), self.values(_mix(self.F, x, keep))
        scale = self.d_head**-0.5 if self.scale else 1.0
        return self.join(attend(self.queries(x), keys, values, self.normaliser, scale), x)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, n ≤ {self.n_max}, k={self.k}, scale={self.scale}"


def _mix(matrix: Tensor, x: Tensor, keep: Tensor | None) -> Tensor:
    """E X: column r of E belongs to the real token of rank r; padding is 0 in x and adds nothing."""
    if keep is None and torch.compiler.is_exporting():
        return (x.mT @ matrix[:, : x.shape[1]].mT).mT  # onnxruntime has no product of a matrix with no matrices at all
    if keep is None:
        return matrix[:, : x.shape[1]] @ x
    return matrix.mT[ranks(x, keep)].mT @ x

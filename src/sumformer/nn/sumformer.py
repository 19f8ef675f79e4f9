"""A 3.1, the Sumformer:  Σ = Σ_k φ(x_k),  S(X)_i = ψ(x_i, Σ)."""

from __future__ import annotations

from inspect import signature

from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, with_dtypes_named, zero_padding
from sumformer.nn.mlp import MLP
from sumformer.nn.pair_mlp import PairMLP
from sumformer.nn.polynomial_features import PolynomialFeatures
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.summarising import FeatureSum
from sumformer.nn.summary import Summary, summarise


class Sumformer(FeatureSum):
    """φ: (…, d) → (…, d') and ψ: (x, Σ) → (…, d_out), any modules. The true sum, or the mean with `mean=True`.

    ψ gets Σ as (batch, 1, d'), or as (batch, n, d') where tokens see different sums: with `is_causal`, which sums over
    k ≤ i, and for a pack (1, total, d) with `cu_seqlens` and `max_seqlen`, where each sequence has its own.
    """

    def __init__(self, phi: nn.Module, psi: nn.Module, mean: bool = False) -> None:
        super().__init__()
        _check_pair(psi)
        self.phi, self.psi, self.mean = phi, psi, mean

    @with_dtypes_named
    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        keep = keep_from_attention_mask("Sumformer", check_tokens("Sumformer", x), attention_mask)
        segments = segments_of("Sumformer", x, attention_mask, cu_seqlens, max_seqlen)
        return self.evaluate(x, keep, segments, is_causal)

    def summarise(self, z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> Summary:
        """Σ over the sources z (batch, m, d), each counted `weights` times."""
        keep = keep_from_attention_mask("summarise", check_tokens("summarise", z), attention_mask)
        return summarise(self.features(zero_padding(z, keep)), weights, keep)

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for queries x (batch, n, d), which need not be the sources."""
        out: Tensor = self.psi(x, self.sum_of(state))
        return out

    def features(self, x: Tensor) -> Tensor:
        out: Tensor = self.phi(x)
        return out

    def extra_repr(self) -> str:
        return "ℝ^{n×d} → ℝ^{n×d_out}, " + ("mean" if self.mean else "sum")


def _check_pair(psi: nn.Module) -> None:
    """ψ can be called with x and Σ."""
    try:
        signature(psi.forward).bind(None, None)
    except TypeError:
        raise InputError(
            f"Sumformer: expected ψ of x and Σ, as PairMLP(d, d_latent, d_out), got {type(psi).__name__}, which takes "
            "another number of arguments; Concatenated(module) gives a module of one both side by side"
        ) from None


def mlp_sumformer(
    d: int, d_latent: int, d_out: int, hidden: int = 50, depth: int = 5, activation: str = "relu", mean: bool = False
) -> Sumformer:
    """The paper's MLP Sumformer: φ and ψ are MLPs."""
    phi = MLP(d, d_latent, hidden, depth, activation)
    return Sumformer(phi, PairMLP(d, d_latent, d_out, hidden, depth, activation), mean)


def polynomial_sumformer(
    d: int,
    degree: int,
    d_out: int,
    hidden: int = 50,
    depth: int = 5,
    activation: str = "relu",
    basis: str = "monomial",
    mean: bool = False,
) -> Sumformer:
    """The paper's Polynomial Sumformer: φ the fixed monomials up to total degree `degree`, ψ an MLP."""
    phi = PolynomialFeatures(d, degree, basis)
    return Sumformer(phi, PairMLP(d, phi.d_out, d_out, hidden, depth, activation), mean)

"""ρ, applied to each row z of the attention matrix: where it puts its weight, Σ ρ(z) = 1.

softmax      ρ(z)_i = exp(z_i) / Σ_j exp(z_j)
hardmax      ρ(z)_i = [z_i = max z] / #{j : z_j = max z}
sparsemax    ρ(z)_i = max(z_i − τ, 0)
entmax-1.5   ρ(z)_i = max(z_i / 2 − τ, 0)²                 τ such that the row sums to 1

Entries with keep = False get weight 0 and gradient 0; a row that keeps nothing is all zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.pretrained import PretrainedModule

# Sparsemax and entmax-1.5 put no weight on what lies 1 or more below the row's maximum (z / 2 for entmax). Entries are
# therefore cut off here: no infinities, and partial sums over long rows stay small.
_CUT = -2.0


def softmax(logits: Tensor, keep: Tensor | None = None) -> Tensor:
    """exp(z_i) / Σ_j exp(z_j) over kept entries."""
    if keep is None:
        return logits.softmax(-1)
    return torch.where(keep, torch.where(keep, logits, _lowest(logits)).softmax(-1), 0.0)


def hardmax(logits: Tensor, keep: Tensor | None = None) -> Tensor:
    """All weight on the largest kept entry; ties share it. Piecewise constant: its gradient is zero."""
    z = logits.detach() if keep is None else torch.where(keep, logits.detach(), -torch.inf)
    largest = z == z.amax(-1, keepdim=True)
    largest = largest if keep is None else largest & keep
    return largest.to(logits.dtype) / largest.sum(-1, keepdim=True).clamp(min=1).to(logits.dtype)


def sparsemax(logits: Tensor, keep: Tensor | None = None) -> Tensor:
    """max(z_i − τ, 0), τ = (Σ_{support} z − 1) / |support|, the support found by sorting."""
    z = _below_maximum(_at_least_float32(logits), keep)
    ordered, k = _ordered(z)
    size = (1 + k * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    support = _support(z, ordered, size, keep)
    tau = (torch.where(support, z, 0.0).sum(-1, keepdim=True) - 1) / _count(support, z)
    return torch.where(support, z - tau, 0.0).relu().to(logits.dtype)


def entmax15(logits: Tensor, keep: Tensor | None = None) -> Tensor:
    """max(z_i/2 − τ, 0)², τ = mean − √((1 − Σ (z/2 − mean)²) / |support|) over the support, found by sorting."""
    z = _below_maximum(_at_least_float32(logits) / 2, keep)
    ordered, k = _ordered(z)
    mean = ordered.cumsum(-1) / k
    spread = (ordered.square().cumsum(-1) / k - mean.square()) * k
    size = (mean - ((1 - spread) / k).clamp(min=0).sqrt() <= ordered).sum(-1, keepdim=True)
    support = _support(z, ordered, size, keep)
    count = _count(support, z)
    centre = torch.where(support, z, 0.0).sum(-1, keepdim=True) / count
    spread = torch.where(support, z - centre, 0.0).square().sum(-1, keepdim=True)
    # On the support (1 − spread) / count ≥ 1 / count², so the root is differentiable.
    tau = centre - ((1 - spread) / count).clamp(min=1e-30).sqrt()
    return torch.where(support, z - tau, 0.0).relu().square().to(logits.dtype)


class Normaliser(PretrainedModule, ABC):
    """ρ as an object: (…, n) logits and an optional boolean `keep` that broadcasts to them → (…, n) weights."""

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, logits: Tensor, keep: Tensor | None = None) -> Tensor: ...


def normaliser_or_softmax(where: str, normaliser: Normaliser | None) -> Normaliser:
    """The ρ that was given, as an object; softmax where none was."""
    if normaliser is None:
        return Softmax()
    if isinstance(normaliser, type) or not callable(normaliser):
        choices = "Softmax(), Hardmax(), Sparsemax(), Entmax15() of sumformer.nn, or a module of your own"
        raise InputError(f"{where}: expected normaliser to be one of {choices}; got {normaliser!r}")
    return normaliser


class Softmax(Normaliser):
    """ρ(z)_i = exp(z_i) / Σ_j exp(z_j)."""

    def forward(self, logits: Tensor, keep: Tensor | None = None) -> Tensor:
        return softmax(logits, keep)


class Hardmax(Normaliser):
    """ρ(z)_i = [z_i = max z] / #{j : z_j = max z}; no gradient reaches the logits."""

    def forward(self, logits: Tensor, keep: Tensor | None = None) -> Tensor:
        return hardmax(logits, keep)


class Sparsemax(Normaliser):
    """ρ(z) = the point of the simplex nearest to z (Martins, Astudillo 2016)."""

    def forward(self, logits: Tensor, keep: Tensor | None = None) -> Tensor:
        return sparsemax(logits, keep)


class Entmax15(Normaliser):
    """ρ(z) = argmax_p ⟨p, z⟩ + H_{3/2}(p), Tsallis entropy H (Peters, Niculae, Martins 2019)."""

    def forward(self, logits: Tensor, keep: Tensor | None = None) -> Tensor:
        return entmax15(logits, keep)


def _lowest(z: Tensor) -> float:
    return torch.finfo(z.dtype).min


def _at_least_float32(z: Tensor) -> Tensor:
    return z.to(torch.promote_types(z.dtype, torch.float32))


def _below_maximum(z: Tensor, keep: Tensor | None) -> Tensor:
    """z − max z, cut off from below; ρ does not change when a row is shifted, so neither does its gradient."""
    if keep is None:
        return (z - z.detach().amax(-1, keepdim=True)).clamp(min=_CUT)
    largest = torch.where(keep, z.detach(), _lowest(z)).amax(-1, keepdim=True)
    return torch.where(keep, z - largest, _CUT).clamp(min=_CUT)


def _ordered(z: Tensor) -> tuple[Tensor, Tensor]:
    """The row from large to small, and 1 … n."""
    ordered = z.detach().sort(dim=-1, descending=True).values
    return ordered, torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)


def _support(z: Tensor, ordered: Tensor, size: Tensor, keep: Tensor | None) -> Tensor:
    """The `size` largest entries, ties included."""
    support = z.detach() >= ordered.gather(-1, size.clamp(min=1) - 1)
    return support if keep is None else support & keep


def _count(support: Tensor, z: Tensor) -> Tensor:
    return support.sum(-1, keepdim=True).clamp(min=1).to(z.dtype)

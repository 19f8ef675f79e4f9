"""SumMixer: the Sumformer as a drop-in replacement for a self-attention layer, in O(n).

Σ = mean_k σ(W_φ x_k + b_φ),   y_i = W_o σ(W_x x_i + W_s Σ + b) + b_o
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import transformed
from sumformer.kernels.sum_mix import mixed
from sumformer.nn.inputs import check_tokens, keep_from_key_padding_mask, zero_padding
from sumformer.nn.layer import Layer, check_positive
from sumformer.nn.mlp import ACTIVATIONS, activation_module
from sumformer.nn.segments import Segments
from sumformer.nn.summarising import FeatureSum
from sumformer.nn.summary import Summary, summarise

_HALF = (torch.bfloat16, torch.float16)
_NUMBERS = (nn.Parameter, Tensor)
"""Tensors that lie in memory as they are: not those of a subclass."""


class SumMixer(FeatureSum, Layer):
    """Mixes tokens of width `d_model` through a latent of width `d_latent` (default d_model).

    The mean is the default here, so that activations do not grow with n; `mean=False` gives the true sum. In half
    precision on a GPU the formula runs as one operator that never writes φ(X). `recompute` keeps nothing but x and Σ
    for the gradient, on any device: two products more, and memory beside x, y and their gradients that does not grow.
    """

    def __init__(
        self,
        d_model: int,
        d_latent: int | None = None,
        activation: str = "gelu",
        mean: bool = True,
        dropout: float = 0.0,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.width = d_model
        self.d_model, self.activation, self.mean, self.dropout = d_model, activation, mean, dropout
        self.recompute = recompute
        self.d_latent = d_model if d_latent is None else d_latent
        check_positive("SumMixer", d_model=d_model, d_latent=self.d_latent)
        self.phi = nn.Linear(d_model, self.d_latent)
        self.from_token = nn.Linear(d_model, d_model)
        self.from_sum = nn.Linear(self.d_latent, d_model, bias=False)
        self.out = nn.Linear(d_model, d_model)
        self.sigma = activation_module(activation)
        self.drop = nn.Dropout(dropout)

    def summarise(self, z: Tensor, weights: Tensor | None = None, key_padding_mask: Tensor | None = None) -> Summary:
        """Σ over the sources z (batch, m, d_model), each counted `weights` times."""
        check_tokens("SumMixer.summarise", z, self.d_model)
        keep = keep_from_key_padding_mask("SumMixer.summarise", z, key_padding_mask)
        return summarise(self.features(zero_padding(z, keep)), weights, keep)

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """The mixed tokens for queries x (batch, n, d_model), which need not be the sources."""
        total = self.sum_of(state).to(x.dtype)
        mixed: Tensor = self.out(self.drop(self.sigma(self.from_token(x) + self.from_sum(total))))
        return mixed

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        weights = self._weights(x)
        return super().formula(x, keep) if weights is None else self._mix(x, weights, keep, None)

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        weights = None if is_causal else self._weights(x)
        if weights is None:
            return super().packed_formula(x, segments, is_causal)
        return self._mix(x, weights, None, segments.cu_seqlens)

    def _weights(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """W_φ, b_φ, W_x, b, W_s, W_o, b_o where the operator applies: it has no dropout and knows no transforms.

        It must do what the modules would. They are not taken by attributes, which a module looks for in three places:
        that is felt where tokens are few.
        """
        parts: Any = self._modules
        if transformed() or x.is_meta or not _is_idle(parts.get("drop")):
            return None
        if not self.recompute and not (x.is_cuda and _dtype(x) in _HALF and runs_on(x)):
            return None
        sigma, total = parts["sigma"], parts["from_sum"]
        phi, token, out = parts["phi"], parts["from_token"], parts["out"]
        if not _is_plain(sigma, ACTIVATIONS.get(self.activation)) or getattr(sigma, "approximate", "none") != "none":
            return None
        if not (_is_plain(phi) and _is_plain(token) and _is_plain(total) and _is_plain(out)) or total.bias is not None:
            return None
        weights = (phi.weight, phi.bias, token.weight, token.bias, total.weight, out.weight, out.bias)
        device, dtype, cast = x.device, x.dtype, _is_cast(x)
        for t in weights:
            if type(t) not in _NUMBERS or t.device != device or (t.dtype != dtype and not cast):
                return None
        return None if _hooks_of_all() else weights

    def _mix(self, x: Tensor, weights: tuple[Tensor, ...], keep: Tensor | None, cu_seqlens: Tensor | None) -> Tensor:
        dtype, save = _dtype(x), torch.is_grad_enabled()
        tensors = [t if t.dtype == dtype else t.to(dtype) for t in (x.contiguous(), *weights)]
        return mixed(*tensors, keep, cu_seqlens, self.activation, self.mean, save, self.recompute)

    def features(self, x: Tensor) -> Tensor:
        out: Tensor = self.sigma(self.phi(x))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, {'mean' if self.mean else 'sum'} over {self.d_latent}"


def _is_cast(x: Tensor) -> bool:
    """By autocast, which leaves float64 alone."""
    return torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64


def _dtype(x: Tensor) -> torch.dtype:
    """What a product with x is computed in."""
    return torch.get_autocast_dtype(x.device.type) if _is_cast(x) else x.dtype


def _is_plain(part: nn.Module, kind: type[nn.Module] | None = nn.Linear) -> bool:
    """A module whose call is its formula: no subclass, no parametrisation, no hooks, no `forward` of its own."""
    if type(part) is not kind:
        return False
    hooks = part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
    return not hooks and "forward" not in part.__dict__


def _is_idle(drop: Any) -> bool:
    """It changes nothing."""
    return _is_plain(drop, nn.Identity) or (_is_plain(drop, nn.Dropout) and not (drop.training and drop.p))


def _hooks_of_all() -> bool:
    """Hooks that every module calls."""
    return not torch.compiler.is_compiling() and bool(_has_any_global_hook())  # type: ignore[no-untyped-call]

"""f and N at tokens of weighted multisets, side by side."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sumformer.certificates.attack_inputs import own_first
from sumformer.certificates.weighted_value import weighted_value
from sumformer.nn.summary import Summary
from sumformer.targets import Environment, Target, evaluate, reductions
from sumformer.targets.torch_evaluation import TorchOperations


class Network(Protocol):
    """What is attacked: ψ(x_i, Σ) with Σ = Σ_j w_j φ(z_j), float `outside`, computed in `inside`."""

    inside: torch.dtype
    outside: torch.dtype

    @property
    def latent_dimension(self) -> int: ...
    def summarise(self, z: Tensor, weights: Tensor | None = None) -> Summary: ...
    def apply(self, x: Any, state: Summary | None = None) -> Any: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...


@dataclass(frozen=True)
class Comparison:
    """f, and the network that claims to be near it."""

    target: Target
    network: Network

    def errors(self, points: Tensor, weights: Tensor, queries: int = 1) -> Tensor:
        """‖f − N‖_∞ at the first tokens, (batch, queries); ∞ where N is not finite, −1 where f alone is no number."""
        f, N = self.values(self.small(points.shape[1]), points, weights, queries)
        gap = torch.where(f.isfinite().all(-1), (f - N).abs().amax(-1), -1.0)
        return torch.where(N.isfinite().all(-1), gap, inf)

    def values(self, network: Network, points: Tensor, weights: Tensor, queries: int = 1) -> tuple[Tensor, Tensor]:
        """f and N at the first tokens, (batch, queries, width)."""
        outside = points.to(network.outside)
        device = next((p.device for p in network.parameters()), torch.device("cpu"))
        state = network.summarise(outside.to(device), weights.to(device, network.inside))
        N = network.apply(outside[:, :queries].to(device), state).to(points)
        if queries == 1:
            return weighted_value(self.target, points, weights).unsqueeze(1), N
        places = own_first(points.shape[1], torch.arange(queries))
        f = weighted_value(self.target, points[:, places].flatten(0, 1), weights[:, places].flatten(0, 1))
        return torch.unflatten(f, 0, (len(points), queries)), N

    def small(self, m: int) -> Network:
        """The same network without the zeros that fill up a group of tokens: they are added exactly."""
        if not m < getattr(self.network, "group", 0):
            return self.network
        small: Any = copy.copy(self.network)
        small.group = max(2, m)
        return small  # type: ignore[no-any-return]

    def balance(self, points: Tensor) -> list[Tensor]:
        """ℓ_j = −log|e(x, y_j)| for the bodies e of width 1: every token holds the same share of Σ_j w_j e(x, y_j)."""
        ops = TorchOperations(points.dtype, points.device)
        bodies = dict.fromkeys(r.body for r in reductions(self.target.expression) if r.width == 1)
        plain = [b for b in bodies if not reductions(b)][:2]
        env = Environment(x=points[:, :1], y=points)
        sizes = [evaluate(b, ops, env)[..., 0].abs().nan_to_num(1.0, 1.0) for b in plain]
        return [-size.clamp(1e-30, 1e30).log() for size in sizes] or [torch.zeros_like(points[..., 0])]

"""Built(N, terms): what a proof hands over: a network, and error terms with Σ terms ≥ sup_X ‖f(X) − N(X)‖_∞."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from sumformer.certificates.certificate import OF_A_SUMFORMER, ErrorTerm
from sumformer.targets.target import Target

SLACK = 1.05  # claimed over computed, so that a checker with slightly wider enclosures agrees
ROUNDING_SLACK = 2.0  # rounding is counted differently by different people; as much of this as ε has room for


class ConstructedNetwork(Protocol):
    """A saved module that maps tokens (batch, n, d) of dtype `outside`, computing in `inside`.

    A sum over tokens also has `summarise` and `apply`, and `group`, the size of its summation tree.
    """

    arithmetic: str

    @property
    def inside(self) -> torch.dtype: ...
    @property
    def outside(self) -> torch.dtype: ...
    @property
    def latent_dimension(self) -> int: ...
    def __call__(self, x: Tensor, *, attention_mask: Tensor | None = None) -> Tensor: ...
    def save_pretrained(self, directory: Any) -> None: ...
    def parameters(self, recurse: bool = True) -> Any: ...


@dataclass(frozen=True)
class Built:
    """A network and its proof, before it is signed: `why` is the route in one sentence.

    `norm` is "sup", or "d_p" with a number for p where the bound is of (∫ ‖f − N‖_p^p)^{1/p}.
    """

    network: Any
    route: str
    why: str
    terms: tuple[ErrorTerm, ...]
    latent_dimension: int
    constants: Mapping[str, Any]
    assumptions: tuple[str, ...] = OF_A_SUMFORMER
    architecture: str = "sumformer"
    norm: str = "sup"
    target: Target | None = None  # what the terms speak of, where it is written otherwise than what was asked for

    @property
    def total(self) -> float:
        return sum(term.bound for term in self.terms)


def norm_name(p: float | None) -> str:
    """d_1, d_2, d_1.5; sup where there is no p."""
    return "sup" if p is None else "d_" + repr(float(p)).removesuffix(".0")


@dataclass(frozen=True)
class Estimate:
    """What a route would cost and certify, predicted without building. `reachable`: the least ε it would meet."""

    possible: bool
    why: str
    latent_dimension: int | None = None
    terms: int | None = None  # of ψ, or table entries
    seconds: float | None = None
    reachable: float | None = None

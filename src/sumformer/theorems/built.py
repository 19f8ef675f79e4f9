"""Built(N, terms): what a proof hands over: a network, and error terms with Σ terms ≥ sup_X ‖f(X) − N(X)‖_∞, or d_p."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sumformer.certificates.certificate import OF_A_SUMFORMER, ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.targets.target import Target

SLACK = 1.05  # claimed over computed, so that a checker with slightly wider enclosures agrees
ROUNDING_SLACK = 2.0  # rounding is counted differently by different people; as much of this as ε has room for


@dataclass(frozen=True)
class Built:
    """A network and its proof, before it is signed: `why` is the route in one sentence.

    `network` is a saved module on tokens (batch, n, d) of dtype `network.outside`, that computes in `network.inside`; a
    sum over tokens also has `summarise` and `apply`, and `group`, the size of its summation tree.
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
    passed_over: tuple[str, ...] = ()  # what was tried first, and why it was not taken
    target: Target | None = None  # what the terms speak of, where it is written otherwise than what was asked for

    @property
    def total(self) -> float:
        return sum(term.bound for term in self.terms)


def norm_name(p: float | None) -> str:
    """d_1, d_2, d_1.5; sup where there is no p."""
    return "sup" if p is None else "d_" + repr(float(p)).removesuffix(".0")


@dataclass(frozen=True)
class Estimate:
    """What a route would cost and certify, predicted without building.

    `reachable`: an ε it would meet, with these terms; refused, or by route grid, with all that it may take.
    """

    possible: bool
    why: str
    latent_dimension: int | None = None
    terms: int | None = None  # of ψ, or table entries
    seconds: float | None = None
    reachable: float | None = None

    @classmethod
    def refused(cls, error: RefusedError | DomainError) -> Estimate:
        """Not possible, for the reason raised."""
        return cls(False, in_one_line(error), reachable=getattr(error, "reachable", None))


def in_one_line(error: RefusedError | DomainError) -> str:
    """The message and its reasons, beside each other; whoever asks names the route."""
    return re.sub(r"^route \w+: ", "", str(error)).replace("\n  - ", "; ")

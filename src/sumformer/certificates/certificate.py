"""certificate.json: for every X in the domain ‖f(X) − N(X)‖_∞ ≤ total, or d_p(f, N) ≤ total; the terms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any, Literal

from sumformer.algebra.rounding import shown_up
from sumformer.errors import FileFormatError
from sumformer.nn.pretrained import read_config

CERTIFICATE_FILE = "certificate.json"
VERSION = 1
MAX_MERGES = 2**20  # of summaries, one after another
MAX_COORDINATES = 28  # of a token: a checker's arrays have two axes for each, numpy's at most 64

# What a proof may take for granted, in words; constructions name it, checkers compare it letter by letter.
IN_THE_BOX = "tokens are finite and lie in the box"
COUNTED_IN_THE_BOX = f"{IN_THE_BOX}; weights, where given, are whole numbers (how often a token counts)"
OF_A_SUMFORMER = (
    "matrix products and sums are computed in IEEE arithmetic of the stated precision, in any order (TF32 off)",
    COUNTED_IN_THE_BOX,
)
TORCH_FUNCTIONS = (  # named where the network evaluates one
    "torch's exp, log, sin, cos, tanh, sigmoid and sqrt err by at most 4 ulp on the device the network runs on"
)
OWN_TOKEN = "every token whose result is asked for is itself among the tokens summed"  # named where the proof uses it
OF_A_COMPILED_NETWORK = (
    "matrix products and sums are computed in IEEE float64 arithmetic, in any order (TF32 off)",
    "exp(0) = 1 and √k are correctly rounded; no other elementary function is evaluated",
    IN_THE_BOX,
)
OF_A_DEEP_NETWORK = (
    "torch's exp is 1 at 0 and 0 below −746, in softmax and in scaled_dot_product_attention",
    "matrix products and sums are computed in IEEE float64 arithmetic, in any order",
    IN_THE_BOX,
)
NOT_CLAIMED = ("why", "grouping", "prefer", "lipschitz_attained")  # constants that are remarks: nothing checks them
Kind = Literal["proved", "enclosed", "rounding", "assumed"]


@dataclass(frozen=True)
class ErrorTerm:
    """One part of the bound. *proved*: by a theorem with checked hypotheses; *enclosed*: by interval evaluation;
    *rounding*: of the stated arithmetic; *assumed*: follows from a named assumption. Sampling is not a kind: it may
    refute, never certify."""

    name: str
    kind: Kind
    bound: float


@dataclass(frozen=True)
class Certificate:
    """What is claimed of a saved network."""

    target: str
    d: int
    box: str
    tokens: str
    arithmetic: str
    route: str
    epsilon: float
    latent_dimension: int
    terms: tuple[ErrorTerm, ...]
    total: float
    assumptions: tuple[str, ...]
    constants: Mapping[str, Any]
    weights_sha256: str = ""
    config_sha256: str = ""
    architecture: str = "sumformer"
    norm: str = "sup"  # or d_p: the bound is of (∫ ‖f − N‖_p^p)^{1/p} over the domain
    not_claimed: tuple[str, ...] = NOT_CLAIMED
    version: int = VERSION

    def __repr__(self) -> str:
        domain = f"d = {self.d}, {self.tokens} tokens, box {self.box}"
        return f"Certificate({self.target}, {domain}: {self.norm} error ≤ {self.total:.6g}, ε = {self.epsilon:g})"

    @property
    def p(self) -> float | None:
        """p of d_p; None where the bound is of the supremum."""
        return float(self.norm.removeprefix("d_")) if self.norm.startswith("d_") else None

    @property
    def merges(self) -> int:
        """How deep summaries may be merged: so many one after another, or 2 to this power in pairs.

        Counts of tokens, of route cells, are whole numbers and added exactly: merges change nothing.
        """
        if self.architecture != "sumformer":
            return 0
        merges: int = self.constants.get("merges", 0) if self.route in ("exact", "sums", "mesh") else 0
        return MAX_MERGES if self.route == "cells" else merges

    @property
    def why(self) -> str:
        """The route in one sentence: a remark, not a claim."""
        return str(self.constants.get("why", ""))

    @property
    def statement(self) -> str:
        """What is claimed, in words."""
        count = "any number of tokens" if self.tokens == "any" else f"n = {self.tokens} tokens"
        domain = f"{count} in the box {self.box}" + (f" of {self.d} coordinates" if self.d > 1 else "")
        asked = 0 if self.route == "cells" else self.merges
        parts = f", and of summaries of parts merged up to {asked:,} deep" if asked else ""
        if self.p is None:
            claim = f"‖f(X) − N(X)‖_∞ ≤ {shown_up(self.total)} for every X of {domain}{parts}"
        else:
            claim = f"{self.norm}(f, N) ≤ {shown_up(self.total)} over {domain}"
        return f"{claim}; f = {self.target}, N in {self.arithmetic}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def read(path: Path) -> Certificate:
        if not path.exists():
            raise FileFormatError(path, "no such file; expected a folder of `sumformer construct --out` or .save(…)")
        data = read_config(path)
        try:
            terms = tuple(ErrorTerm(**term) for term in data.pop("terms"))
            assumptions, remarks = tuple(data.pop("assumptions")), tuple(data.pop("not_claimed", NOT_CLAIMED))
            certificate = Certificate(terms=terms, assumptions=assumptions, not_claimed=remarks, **data)
        except (KeyError, TypeError) as error:
            raise FileFormatError(path, f"is not a certificate ({error})") from error
        if certificate.version != VERSION:
            raise FileFormatError(path, f"has version {certificate.version}; this package reads version {VERSION}")
        _check_statement(path, certificate)
        return certificate


def _check_statement(path: Path, c: Certificate) -> None:
    """What the statement is put together from can be read."""
    if not isinstance(c.constants, dict):
        raise FileFormatError(path, "constants: expected an object")
    merges = c.constants.get("merges", 0)
    if type(merges) is not int or not 0 <= merges <= MAX_MERGES:
        raise FileFormatError(path, f"merges: expected an integer from 0 to {MAX_MERGES}")
    try:
        known = c.norm == "sup" or (c.p is not None and 1 <= c.p < inf)
    except (AttributeError, ValueError):
        known = False
    if not known:
        raise FileFormatError(path, "norm: expected sup, or d_p with a number 1 ≤ p < ∞ for p")
    if type(c.total) not in (int, float):
        raise FileFormatError(path, "total: expected a number")


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

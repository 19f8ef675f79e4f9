"""certificate.json: for every X in the domain, ‖f(X) − N(X)‖_∞ ≤ total, term by term, with what was assumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sumformer.errors import FileFormatError
from sumformer.nn.pretrained import read_config

CERTIFICATE_FILE = "certificate.json"
VERSION = 1
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
    version: int = VERSION

    @property
    def p(self) -> float | None:
        """p of d_p; None where the bound is of the supremum."""
        return float(self.norm.removeprefix("d_")) if self.norm.startswith("d_") else None

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def read(path: Path) -> Certificate:
        data = read_config(path)
        try:
            terms = tuple(ErrorTerm(**term) for term in data.pop("terms"))
            certificate = Certificate(terms=terms, assumptions=tuple(data.pop("assumptions")), **data)
        except (KeyError, TypeError) as error:
            raise FileFormatError(path, f"is not a certificate ({error})") from error
        if certificate.version != VERSION:
            raise FileFormatError(path, f"has version {certificate.version}; this package reads version {VERSION}")
        return certificate


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

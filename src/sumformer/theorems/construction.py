"""construct(target, ε) → Construction(target, network, certificate): the theorem's statement as a function."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate, ErrorTerm, sha256
from sumformer.errors import InputError, RefusedError
from sumformer.nn.expression_sumformer import ARITHMETICS as NETWORK_ARITHMETICS
from sumformer.nn.expression_sumformer import ExpressionSumformer
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, zero_padding
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE
from sumformer.nn.token_sum import levels
from sumformer.targets import Node, to_source
from sumformer.targets.target import Target
from sumformer.targets.target import target as make_target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.build import build
from sumformer.theorems.alberti_2023.sums_route import SumsResult, sums_route

ROUTES = ("exact", "sums")
SLACK = 1.05  # claimed over computed, so that a checker with slightly wider enclosures agrees
ROUNDING_SLACK = 2.0  # rounding is counted differently by different people; as much of this as ε has room for
ASSUMPTIONS = (
    "torch's exp, log, sin, cos, tanh, sigmoid and sqrt err by at most 4 ulp on the device the network runs on",
    "matrix products and sums are computed in IEEE arithmetic of the stated precision, in any order (TF32 off)",
    "tokens are finite and lie in the box; weights, where given, are whole numbers (how often a token counts)",
)


@dataclass(frozen=True)
class Construction:
    """A target, the network that approximates it, and the proof of how well."""

    target: Target
    network: ExpressionSumformer
    certificate: Certificate
    seconds: float = 0.0

    def __call__(
        self,
        X: Tensor,
        *,
        sources: Tensor | None = None,
        weights: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """N(X) for tokens inside the box, which is checked; queries X against weighted `sources` where given."""
        points = X if sources is None else sources
        for tokens in {id(t): t for t in (X, points)}.values():
            self._check_tokens(tokens, attention_mask if tokens is points else None)
        self._check_count(points, weights, attention_mask)
        if sources is None and weights is None:
            out: Tensor = self.network(X, attention_mask=attention_mask)
            return out
        self._refuse_others()
        result: Tensor = self.network.apply(X, self.network.summarise(points, weights, attention_mask))
        return zero_padding(result, None if attention_mask is None or sources is not None else attention_mask != 0)

    def _check_tokens(self, X: Tensor, attention_mask: Tensor | None) -> None:
        """Shape, precision, and the box: padding may lie anywhere."""
        check_tokens("construction", X, self.target.d)
        self._check_precision(X)
        keep = keep_from_attention_mask("construction", X, attention_mask)
        if keep is None or not bool((self.target.box.contains(X) | ~keep).all()):
            centre = X.new_tensor([float(c) for c in self.target.box.centre])
            self.target.box.check(X if keep is None else torch.where(keep.unsqueeze(-1), X, centre))

    def _check_count(self, points: Tensor, weights: Tensor | None, attention_mask: Tensor | None) -> None:
        """The number of tokens is one the certificate speaks of, and padding does not deepen the summation tree."""
        if weights is not None and not bool((weights >= 0).all() & weights.isfinite().all()):
            raise InputError("construction: expected finite weights ≥ 0 (how often each source counts)")
        counts = torch.full((1,), float(points.shape[1])) if weights is None else weights.double().sum(1)
        if attention_mask is not None:
            keep = attention_mask != 0
            counts = (keep.double() if weights is None else torch.where(keep, weights.double(), 0.0)).sum(1)
        allowed, group = self.target.tokens, self.network.group
        few, many = float(counts.min()), float(counts.max())
        if not allowed.minimum <= few <= many <= allowed.maximum:
            found = f"{few:g}" if few == many else f"{few:g} to {many:g}"
            raise InputError(f"this construction is certified for {allowed.formula()}, got n = {found}")
        if allowed.maximum > group and levels(points.shape[1], group) > levels(allowed.maximum, group):
            raise InputError(
                f"this much padding ({points.shape[1]} places) is not covered by the certificate: compact it"
            )

    def _check_precision(self, X: Tensor) -> None:
        outside = NETWORK_ARITHMETICS[self.network.arithmetic][1]
        if X.dtype.itemsize > outside.itemsize:
            raise InputError(
                f"this construction is certified for {outside} tokens, got {X.dtype}: convert them, x.to({outside})"
            )

    def _refuse_others(self) -> None:
        if any(r.kind.endswith("others") for r in self.network._reductions):
            raise InputError("sum_others and mean_others leave out the own token: queries must be the sources")

    def save(self, directory: str | Path) -> None:
        """Write config.json, model.safetensors and certificate.json (report.html is written by `report`)."""
        folder = Path(directory)
        self.network.save_pretrained(folder)
        signed = replace(
            self.certificate,
            weights_sha256=sha256(folder / WEIGHTS_FILE),
            config_sha256=sha256(folder / CONFIG_FILE),
        )
        (folder / CERTIFICATE_FILE).write_text(signed.to_json(), encoding="utf-8")

    @property
    def proof_latent_dimension(self) -> int | None:
        """C(n+d, d) − 1, the paper's d', where n is bounded."""
        tokens = self.target.tokens
        return None if tokens.symbolic else comb(tokens.maximum + self.target.d, self.target.d) - 1


def construct(
    target: Target | Node | str,
    epsilon: float,
    *,
    route: str | None = None,
    dtype: str = "float64",
    **domain: Any,
) -> Construction:
    """A Sumformer N with sup_X ‖f(X) − N(X)‖_∞ ≤ ε and a certificate of it; refuses with reasons what it cannot prove.

    `dtype` is "float64", "float32", or "mixed" (float32 in and out, float64 inside). A string or tree takes the
    keywords of `sumformer.target`: n, d, box.
    """
    start = time.perf_counter()
    f = target if isinstance(target, Target) else make_target(target, **domain)
    if isinstance(target, Target) and domain:
        raise TypeError(f"construct: a Target has its own domain; unexpected {', '.join(domain)}")
    if not 0 < epsilon < float("inf"):
        raise InputError(f"construct: expected 0 < ε < ∞, got {epsilon}")
    if route is not None and route not in ROUTES:
        raise InputError(f"construct: expected route in {ROUTES}, got {route!r}")
    name = str(dtype).removeprefix("torch.")
    if name not in ARITHMETICS:
        raise InputError(f"construct: expected dtype in {tuple(ARITHMETICS)}, got {dtype!r}")
    result = sums_route(f, epsilon, ARITHMETICS[name])
    found = "exact" if result.exact else "sums"
    if route is not None and route != found and route == "exact":
        raise RefusedError(
            "route exact takes polynomials written with sums", ["this target is not one; route sums takes it"]
        )
    network = build(result.plan, ARITHMETICS[name]).eval().requires_grad_(False)  # to train on: requires_grad_(True)
    certificate = _certify(f, epsilon, name, found, result)
    return Construction(f, network, certificate, time.perf_counter() - start)


def load(directory: str | Path) -> Construction:
    """Read back what `save` wrote; the claim is not re-checked here (`verify` does that)."""
    folder = Path(directory)
    certificate = Certificate.read(folder / CERTIFICATE_FILE)
    network = ExpressionSumformer.from_pretrained(folder).requires_grad_(False)
    f = make_target(certificate.target, n=certificate.tokens, d=certificate.d, box=certificate.box)
    return Construction(f, network, certificate)


def _certify(f: Target, epsilon: float, arithmetic: str, route: str, result: SumsResult) -> Certificate:
    split = result.split
    room = epsilon * (1 - 1e-9) - SLACK * (split.remainder + split.dropped)
    rounding = max(min(ROUNDING_SLACK * split.rounding, room), split.rounding)
    parts = (
        ErrorTerm("interpolation remainder", "proved", split.remainder * SLACK),
        ErrorTerm("dropped and rounded coefficients", "enclosed", split.dropped * SLACK),
        ErrorTerm("rounding", "rounding", rounding),
    )
    terms = tuple(t for t in parts if t.bound > 0)
    total = sum(t.bound for t in terms)
    return Certificate(
        target=f.source,
        d=f.d,
        box=str(f.box),
        tokens=str(f.tokens),
        arithmetic=arithmetic,
        route=route,
        epsilon=epsilon,
        latent_dimension=result.plan.latent_dimension,
        terms=terms,
        total=total,
        assumptions=ASSUMPTIONS,
        constants={"grouping": result.grouping, "kernels": [_kernel_constants(result, k) for k in result.plan.kernels]},
    )


def _kernel_constants(result: SumsResult, kernel: Node) -> dict[str, Any]:
    plan = result.plan.kernels[kernel]
    return {
        "expression": to_source(kernel),
        "degree": plan.degree,
        "interpolation_degree": plan.interpolant.degree,
        "ellipses": [{"variable": e.variable, "rho": e.rho, "maximum": e.maximum} for e in plan.interpolant.ellipses],
        "range": list(plan.range),
        "remainder": plan.interpolant.remainder,
        "dropped": plan.truncation.dropped,
    }

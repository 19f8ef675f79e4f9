"""Which calls of a network its certificate covers: tokens in the box and of the dtype, queries that ψ allows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sumformer.certificates.certificate import OWN_TOKEN, Certificate
from sumformer.errors import InputError
from sumformer.nn.inputs import keep_from_attention_mask
from sumformer.targets import reductions
from sumformer.targets.domain import Box
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.theorems.routes import MERGING


def check_inside(X: Tensor, box: Box, attention_mask: Tensor | None) -> None:
    """Every real token lies in the box; padding may lie anywhere."""
    keep = keep_from_attention_mask("construction", X, attention_mask)
    if keep is None or not bool((box.contains(X) | ~keep).all()):
        centre = X.new_tensor([float(c) for c in box.centre])
        box.check(X if keep is None else torch.where(keep.unsqueeze(-1), X, centre))


def check_precision(X: Tensor, outside: torch.dtype, arithmetic: str) -> None:
    """Tokens are of a dtype that `outside` holds, and torch multiplies float32 in float32 where that is stated."""
    if X.dtype.itemsize < 2:
        raise InputError(f"this construction takes {outside} tokens, got {X.dtype}: convert them, x.to({outside})")
    if X.dtype.itemsize > outside.itemsize:
        raise InputError(
            f"this construction is certified for {outside} tokens, got {X.dtype}: convert them, x.to({outside})"
        )
    products = (torch.backends.cuda if X.is_cuda else torch.backends.mkldnn).matmul.fp32_precision
    if arithmetic == "float32" and products not in ("none", "ieee"):
        raise InputError(
            f"matrix products of float32 are set to {products}, which the certificate does not cover: "
            "torch.set_float32_matmul_precision('highest'), or construct with dtype='mixed'"
        )


def refuse_queries_apart(f: Target | OpaqueTarget, network: Any, architecture: str) -> None:
    """Queries with sources of their own, where there is no sum over sources, or ψ takes the own token out of it."""
    if not hasattr(network, "summarise"):
        raise InputError(f"sources and weights need a sum over tokens; a {architecture} has lists")
    if getattr(network, "own_among_sources", False):
        raise InputError("this network takes the own token out of the sum: queries must be the sources")
    if isinstance(f, Target) and any(r.kind.endswith("others") for r in reductions(f.expression)):
        raise InputError("sum_others and mean_others leave out the own token: queries must be the sources")


def refuse_parts(f: Target | OpaqueTarget, network: Any, certificate: Certificate) -> None:
    """Sums over parts of the tokens, where the certificate is of whole sequences only."""
    if certificate.architecture != "sumformer" or certificate.route not in MERGING:
        raise InputError(
            f"summaries are certified of sumformers by route {' or '.join(MERGING)}, which this one is not: "
            "network.summarise and network.apply work without a proof"
        )
    refuse_queries_apart(f, network, certificate.architecture)
    if OWN_TOKEN in certificate.assumptions or f.positioned:
        raise InputError("this construction is certified for queries that are among the sources: call it with those")


def refuse_strangers(sources: Tensor | None, weights: Tensor | None, attention_mask: Tensor | None) -> None:
    """Queries that are not among the tokens summed, where the certificate is of those that are."""
    absent = torch.zeros(1) if weights is None else weights < 1
    if weights is not None and attention_mask is not None:
        absent = absent & (attention_mask != 0)
    if sources is not None or bool(absent.any()):
        raise InputError(
            "this construction is certified for queries that are among the sources, as its sums are bounded from "
            "below by their own term: take the sources as X, weights ≥ 1; network.apply answers without a proof"
        )

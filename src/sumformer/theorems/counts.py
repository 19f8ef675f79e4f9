"""n, the number of tokens of every sequence, must be one that the certificate speaks of."""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.errors import InputError, ShapeError
from sumformer.nn.segments import Segments
from sumformer.nn.token_sum import levels
from sumformer.targets.domain import Tokens


def check_weights(points: Tensor, weights: Tensor | None) -> None:
    """How often each of the points (batch, n, d) counts: whole numbers ≥ 0."""
    if weights is None:
        return
    if not isinstance(weights, Tensor) or weights.is_complex():
        raise InputError("construction: expected a tensor of whole numbers ≥ 0 as weights")
    if weights.shape != points.shape[:2]:
        raise ShapeError("construction", f"weights of shape (batch, n) = {tuple(points.shape[:2])}", weights.shape)
    w = weights.double()
    if not bool(((w >= 0) & w.isfinite() & (w == w.floor())).all()):
        raise InputError(
            "construction: expected whole numbers ≥ 0 as weights (how often each source counts: the certificate "
            "is of n tokens); outside it, network.summarise takes any"
        )


def counts_of(
    points: Tensor, weights: Tensor | None, attention_mask: Tensor | None, segments: Segments | None
) -> Tensor:
    """n of each sequence: of a batch, padding not counted, or of a pack."""
    if segments is not None:
        return segments.lengths.double()
    if attention_mask is None and weights is None:
        return torch.tensor([float(points.shape[1])], dtype=torch.float64)
    count = torch.ones(points.shape[:2], dtype=torch.float64, device=points.device)
    count = count if weights is None else weights.double()
    return (count if attention_mask is None else torch.where(attention_mask != 0, count, 0.0)).sum(1)


def check_counts(counts: Tensor, places: int, allowed: Tokens, group: int | None, in_a_row: bool = False) -> None:
    """Every n is allowed, and in so many places padding does not deepen the sum over tokens."""
    check_numbers(counts, allowed)
    if counts.numel():  # the batch is not empty
        check_places(places, allowed, group, in_a_row)


def check_numbers(counts: Tensor, allowed: Tokens) -> None:
    """Every n is allowed."""
    if not counts.numel():
        return
    few, many = float(counts.min()), float(counts.max())
    if not allowed.minimum <= few <= many <= allowed.maximum:
        found = f"{few:g}" if few == many else f"{few:g} to {many:g}"
        allows = f"{allowed.minimum} ≤ n ≤ {allowed.maximum}" if allowed.symbolic else allowed.formula()
        raise InputError(f"this construction is certified for {allows}, got n = {found}")


def check_places(places: int, allowed: Tokens, group: int | None, in_a_row: bool = False) -> None:
    """In so many places padding does not deepen the sum over tokens: a tree of groups, or, `in_a_row`, one by one."""
    if group is None or allowed.maximum <= group:
        return
    depth = _groups if in_a_row else levels
    if depth(places, group) > depth(allowed.maximum, group):
        raise InputError(f"this much padding ({places} places) is not covered by the certificate: compact it")


def _groups(n: int, group: int) -> int:
    return -(-n // group)

"""Which of its leaves a coordinate of an expression depends on, and which of them may be cut into pieces at once."""

from __future__ import annotations

from sumformer.certificates.checker.axes import UnionOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.node import Node
from sumformer.targets.tree import Token

Uses = frozenset[tuple[Node, int]]  # (leaf, coordinate of it)


def slots(node: Node, widths: dict[Node, int]) -> dict[tuple[Node, int], int]:
    """A number for each coordinate of the leaves: different ones for two that one coordinate of `node` depends on.

    Pieces of leaves with one number go along together: no coordinate of `node` depends on more than one of them.
    """

    def leaf(part: Node) -> list[Uses] | None:
        if part in widths:
            return [frozenset({(part, k)}) for k in range(widths[part])]
        return [frozenset()] * part.width if isinstance(part, Token) else None

    return _coloured(components(node, UnionOperations[tuple[Node, int]](), leaf, widths))


def _coloured(groups: list[Uses]) -> dict[tuple[Node, int], int]:
    """Greedily: the least number that none of those it meets has."""
    found: dict[tuple[Node, int], int] = {}
    for group in groups:
        for one in group:
            if one not in found:
                taken = {found[other] for g in groups if one in g for other in g if other in found}
                found[one] = next(k for k in range(len(taken) + 1) if k not in taken)
    return found

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

    uses = components(node, UnionOperations[tuple[Node, int]](), leaf, widths)
    order = {part: place for place, part in enumerate(widths)}  # a set's own order differs from run to run
    return _coloured([sorted(group, key=lambda one: (order[one[0]], one[1])) for group in uses])


def _coloured(groups: list[list[tuple[Node, int]]]) -> dict[tuple[Node, int], int]:
    """Greedily, in this order: the least number that none of those it meets has."""
    found: dict[tuple[Node, int], int] = {}
    for group in groups:
        for one in group:
            if one not in found:
                taken = {found[other] for g in groups if one in g for other in g if other in found}
                found[one] = next(k for k in range(len(taken) + 1) if k not in taken)
    return found

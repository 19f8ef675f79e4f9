"""Which coordinates of tokens a reduction looks at: max(y) ∈ ℝ^d is d maxima, each of one coordinate alone.

`coordinatewise` writes a reduction whose components read different coordinates as one for each of them; the numbers
that are computed stay the same. `families` are reductions that share a table of counts, with all they read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.targets.node import Node
from sumformer.targets.tree import Cat, Reduce, Slice, Token
from sumformer.targets.walk import postorder, rebuild, reductions, transform


@dataclass(frozen=True)
class Family:
    """Reductions, inner ones first, and the coordinates of x and y that are read in them."""

    coordinates: tuple[int, ...]
    parts: tuple[Reduce, ...]


def coordinatewise(node: Node) -> Node:
    """The same function, reductions apart where what they read is."""
    return transform(node, _apart)


def families(node: Node) -> tuple[Family, ...]:
    """The reductions of `node`: together those that stand inside one another, and those that read the same."""
    together: list[list[Reduce]] = []
    for part in reductions(node):  # inner ones first
        inside = set(reductions(part.body))
        joined = [some for some in together if not inside.isdisjoint(some)]
        together = [some for some in together if inside.isdisjoint(some)]
        together.append([*(p for some in joined for p in some), part])
    found: dict[tuple[int, ...], list[Reduce]] = {}
    for some in together:
        found.setdefault(tuple(sorted(frozenset().union(*map(read, some)))), []).extend(some)
    return tuple(Family(coordinates, tuple(some)) for coordinates, some in found.items())


def read(node: Node) -> frozenset[int]:
    """The coordinates of tokens that are looked at, in nested reductions too."""
    found: set[int] = set()
    whole: set[Token] = {node} if isinstance(node, Token) else set()
    for part in postorder(node):
        if isinstance(part, Slice) and isinstance(part.arg, Token):
            found |= set(range(part.start, part.stop))
        else:
            whole |= {child for child in part.children if isinstance(child, Token)}
    return frozenset(found.union(*(range(token.d) for token in whole)))


def _apart(node: Node, children: tuple[Node, ...]) -> Node:
    node = rebuild(node, children)
    if not isinstance(node, Reduce) or node.width == 1:
        return node
    everything, bodies = read(node), components(node.body)
    if all(read(body) == everything for body in bodies) or any("y" not in body.free for body in bodies):
        return node
    return Cat(tuple(Reduce(node.kind, body) for body in bodies))


def components(node: Node) -> list[Node]:
    """Every coordinate as an expression of its own."""
    found: dict[Node, list[Node]] = {}
    for part in postorder(node, into_reductions=False):
        match part:
            case _ if part.width == 1:
                found[part] = [part]
            case Slice(arg, start, stop):
                found[part] = found[arg][start:stop]
            case Cat(args):
                found[part] = [e for arg in args for e in found[arg]]
            case Token() | Reduce():
                found[part] = [Slice(part, k, k + 1) for k in range(part.width)]
            case _:
                below = [found[child] * (part.width if child.width == 1 else 1) for child in part.children]
                found[part] = [rebuild(part, each) for each in zip(*below, strict=True)]
    return found[node]

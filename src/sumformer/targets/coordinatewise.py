"""Which coordinates of tokens a reduction looks at: max(y) ∈ ℝ^d is d maxima, each of one coordinate alone.

`coordinatewise` writes a reduction whose components read different coordinates as one for each of them; what is
computed stays the same but for the order of sums. `families` are reductions that are evaluated together, with all they
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sumformer.targets.node import Node
from sumformer.targets.tree import Cat, Reduce, Slice, Token
from sumformer.targets.walk import postorder, rebuild, reductions, transform


@dataclass(frozen=True)
class Family:
    """Reductions, inner ones first; the coordinates of y that are `seen` in them, and those of x that are their `own`.

    Where the own token is left out, the own coordinates are those seen too.
    """

    seen: tuple[int, ...]
    own: tuple[int, ...]
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
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Reduce]] = {}
    for some in together:
        seen, own = (frozenset[int]().union(*(read(p.body, name) for p in some)) for name in ("y", "x"))
        if any(p.kind.endswith("_others") for p in some):
            own |= seen
        found.setdefault((tuple(sorted(seen)), tuple(sorted(own))), []).extend(some)
    return tuple(Family(*coordinates, tuple(some)) for coordinates, some in found.items())


def read(node: Node, name: str) -> frozenset[int]:
    """The coordinates of x, or of y, that are looked at, in nested reductions too."""
    found: set[int] = set()
    whole = [node]
    for part in postorder(node):
        match part:
            case Slice(Token(of), start, stop):
                found |= set(range(start, stop)) if of == name else set()
            case _:
                whole += part.children
    for part in whole:
        if isinstance(part, Token) and part.name == name:
            found |= set(range(part.d))
    return frozenset(found)


def _apart(node: Node, children: tuple[Node, ...]) -> Node:
    node = rebuild(node, children)
    if not isinstance(node, Reduce) or node.width == 1:
        return node
    bodies = components(node.body)
    alike = all(read(body, name) == read(node, name) for body in bodies for name in ("x", "y"))
    if alike or any("y" not in body.free for body in bodies):
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


def on_coordinates(node: Node, kept: Sequence[int]) -> Node:
    """The same expression of tokens that have only these coordinates, ascending, of which all that it reads are."""

    def change(part: Node, children: tuple[Node, ...]) -> Node:
        match part:
            case Slice(Token(name), start, stop):
                first = kept.index(start)
                return Slice(Token(name, len(kept)), first, first + stop - start)
            case Token(name, d) if d == len(kept):
                return part
        return rebuild(part, children)

    return transform(node, change)

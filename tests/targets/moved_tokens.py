"""How far f moves when the tokens that reductions see move and x itself stays: from below, by trying."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import Tensor

from sumformer.targets import Node, Reduce, Slice, Target, Token, postorder, target
from sumformer.targets.walk import rebuild, transform


def doubled(node: Node, d: int) -> Node:
    """f of tokens (x, z): z inside the reductions, x outside."""

    def inner(part: Node, children: tuple[Node, ...]) -> Node:
        return Slice(Token(part.name, 2 * d), d, 2 * d) if isinstance(part, Token) else rebuild(part, children)

    new: dict[Node, Node] = {}
    for part in postorder(node, into_reductions=False):
        if isinstance(part, Reduce):
            new[part] = transform(part, inner)
        elif isinstance(part, Token):
            new[part] = Slice(Token(part.name, 2 * d), 0, d)
        else:
            new[part] = rebuild(part, [new[child] for child in part.children])
    return new[node]


def replaced(f: Target, X: Tensor, Z: Tensor) -> Tensor:
    sides = str(f.box).split(",")
    box = ",".join(sides if len(sides) == 1 else 2 * sides)
    return target(doubled(f.expression, f.d), n=f.tokens, d=2 * f.d, box=box)(torch.cat([X, Z], -1))[:, 0]


def attained(f: Target, radii: np.ndarray, seed: int = 0, batch: int = 48, rounds: int = 2) -> float:
    """The largest change seen for tokens at random, in clusters and on a coarse grid, each moved on its own."""
    g, r = torch.Generator().manual_seed(seed), torch.as_tensor(radii)
    low, high = (torch.tensor([float(v) for v in side]).double() for side in (f.box.lower, f.box.upper))
    worst = 0.0
    for n in (n for n in (1, 2, 3, 10, 100) if f.tokens.allows(n)):
        X = torch.rand(batch, n, f.d, generator=g, dtype=torch.float64)
        X[1::3, 1:] = X[1::3, -1:]  # one token against a cluster
        X[::2], X[5::6] = X[::2].round(), (X[5::6] * 4).round() / 4
        X[1::3, 0] = X[1::3, 0].round()
        for _ in range(rounds):
            at = low + (high - low) * X
            at_rest = replaced(f, at, at)
            for move in [*_directions(f, at, low, high, g), torch.randint(-1, 2, X.shape, generator=g).double()]:
                for sign in (1, -1):
                    change = (replaced(f, at, (at + sign * r * move).clamp(low, high)) - at_rest).abs()
                    worst = max(worst, float(change.nan_to_num().max()))
            X = (X + 0.1 * torch.randn(X.shape, generator=g, dtype=torch.float64)).clamp(0, 1)
    return worst


def _directions(f: Target, X: Tensor, low: Tensor, high: Tensor, g: torch.Generator) -> list[Tensor]:
    """The signs of the gradients, a little off the corners."""
    Z = (X + 1e-7 * torch.randn(X.shape, generator=g, dtype=torch.float64)).clamp(low, high).requires_grad_()
    columns = replaced(f, X, Z).unbind(-1)[:2]
    found = [torch.autograd.grad(v.sum(), Z, retain_graph=True, allow_unused=True)[0] for v in columns if v.grad_fn]
    return [v.nan_to_num().sign() for v in found if v is not None]


def random_source(rng: random.Random, depth: int = 3, y: bool = False) -> str:
    """Texts of moderate values, every n allowed; nothing less itself, which is 0 to some arithmetics only."""

    def grow(y: bool = y) -> str:
        return random_source(rng, depth - 1, y)

    if depth == 0:
        return rng.choice(["x", "y", "y", "0.7"] if y else ["x", "x", "0.7"])
    pick = rng.randrange(8)
    if pick <= 2:
        left, right = grow(), grow()
        return f"({left} {rng.choice('+*' if left == right else '+-*')} {right})"
    if pick == 3:
        return f"({grow()}/(2 + sin({grow()})))"
    if pick == 4:
        return f"{rng.choice(['sin', 'tanh', 'abs', 'sigmoid', 'norm'])}({grow()})"
    if pick == 5:
        return f"{rng.choice(['max', 'min'])}({grow()}, {grow()})"
    body = f"y*{grow(True)}" if pick == 6 else f"abs(y - {grow(True)})"
    return f"{rng.choice(['mean', 'max', 'min', 'mean_others'] if depth < 3 else ['mean', 'max'])}({body})"

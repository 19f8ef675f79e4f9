"""The Sumformer of the discontinuous proof for a target with a formula: ψ evaluates it at x and the decoded centres."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sumformer.nn.grid_module import GridModule
from sumformer.nn.network_operations import NetworkOperations
from sumformer.nn.program import Program
from sumformer.targets import Reduce, parse
from sumformer.targets import reductions as all_reductions


class GridSumformer(GridModule):
    """N(X)_i = f(x_i, centre(c_1), …, centre(c_{n−1}))_1, {c_j} = decode(Σ − φ(q(x_i))), Σ = Σ_k φ(q(x_k)).

    As saved. `config.json`: `expression` the target's canonical source; `d`; `n` the largest number of tokens; `cells`
    = [K_0, …, K_{d−1}] the number of cells along each coordinate; `code`, one of `codes.CODES`; `arithmetic`
    ("float64", "float32", "mixed": float64 inside and float32 outside).
    `model.safetensors`, for each coordinate c:
      `edges.c`    float64 (K_c − 1,), ascending: x lies in cell p_c(x) = #{e ∈ edges.c : e ≤ x_c} ∈ {0, …, K_c − 1}
      `centres.c`  of the dtype inside, (K_c,): the number that stands for x_c in cell p_c
    The cell's number is q(x) = (…(p_0 K_1 + p_1) K_2 + …) K_{d−1} + p_{d−1} < K = Π K_c, and φ(q) is
      "integer", "integer n+1"   one integer Bᑫ, B = 2^(bit length of n) or n + 1 (of any size)
      "lanes", "lanes n+1"       B^(q mod m) in coordinate ⌊q/m⌋, else 0; m the largest with Bᵐ ≤ 2⁵³; float64
      "syndrome"                 (q, q², …, qⁿ⁻¹) mod the least prime ≥ max(K, n + 1); float64; for exactly n tokens
    All of Σ is integers below 2⁵³ (or exact), so Σ − φ(x_i) is exact, and decoding it returns the multiset of the
    other tokens' cells: only two errors remain.
      modulus    every other token is replaced by its cell's centre; with r_c = max over cells of the distance from
                 centres.c[p] to the ends of cell p (the neighbouring edges; the box's ends outermost), at most
                 sup Σ_{j≠i,c} r_c |∂f_i/∂x_{j,c}|   (inside `Positioned` the last coordinate takes the values 1, …, n
                 only: r_c is the largest distance from one of those to its centre, which is 0 as built)
      rounding   f is evaluated at (x_i, centres) in the arithmetic inside: operations of the tree as written, powers
                 as products (at most k − 1 roundings deep), sums over tokens in any order, a mean as sum/n; the own
                 token enters as it is (float32 to float64 is exact); "mixed" rounds the result once more to float32
    """

    def __init__(self, expression: str, d: int, n: int, cells: Sequence[int], code: str, arithmetic: str) -> None:
        super().__init__(d, n, cells, code, arithmetic)
        self.expression = expression
        tree = parse(expression, d)
        self.width = tree.width
        self._reductions = all_reductions(tree)
        places: dict[Reduce, int] = {part: i for i, part in enumerate(self._reductions)}
        self._bodies = [Program(part.body, places) for part in self._reductions]
        self._program = Program(tree, places)

    def value(self, own: Tensor, others: Tensor) -> Tensor:
        """f at the own token of (own, others), with the tree's own operations."""
        ops = NetworkOperations(self.inside, own.device)
        everyone = torch.cat([own, others], dim=1)
        reduced: list[Tensor] = []
        for part, body in zip(self._reductions, self._bodies, strict=True):
            tokens = others if part.kind.endswith("_others") else everyone
            values = body.run(ops, own, tokens, reduced).expand(*tokens.shape[:2], part.width)
            reduced.append(_fold(part.kind, values))
        return self._program.run(ops, own, None, reduced).expand(own.shape[0], 1, self.width)[:, 0]

    def extra_repr(self) -> str:
        shape = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}, n ≤ {self.n}"
        grid = "×".join(str(k) for k in self.cells)
        return f"{shape}, {self.expression}, {grid} cells, code {self.code}, d' = {self.latent_dimension}"


def _fold(kind: str, values: Tensor) -> Tensor:
    """⊕ over the tokens, the second dimension, which stays with length 1."""
    if kind == "max":
        return values.amax(1, keepdim=True)
    if kind == "min":
        return values.amin(1, keepdim=True)
    total = values.sum(1, keepdim=True)
    return total / values.shape[1] if kind.startswith("mean") else total

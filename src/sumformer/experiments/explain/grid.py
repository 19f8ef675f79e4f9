"""A grid Sumformer: the own cell, the others' cells decoded from Σ − φ(x_1), and the centres that stand for them.

The cells must come back exactly; a centre is within half a cell of the token it stands for.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.nn.codes import make_code
from sumformer.nn.grid_module import GridModule
from sumformer.theorems.constructed import Construction

_CODES = {
    "integer": "how many tokens lie in each cell, the digits of one integer",
    "lanes": "how many tokens lie in each cell, several digits to a float64",
    "syndrome": "power sums of the cells' numbers modulo a prime",
}


def explain_grid(made: Construction, network: GridModule, X: Tensor, tokens: Tensor) -> Explanation:
    """X as given, and the `tokens` (n, d) that the network sees."""
    n, inputs = len(tokens), tokens.to(network.outside)
    cells = network.quantise(inputs)
    code = make_code(network.code, prod(network.cells), network.n)
    rest = code.sum(cells[None])[:, None] - code.encode(cells[None])
    decoded = code.decode(rest.reshape(n, -1), n - 1)
    ideal = [network.cell_by_hand(token) for token in inputs.tolist()]
    centres = network.centre_of(torch.tensor(ideal))
    others = torch.stack([torch.cat([centres[:i], centres[i + 1 :]]) for i in range(n)])
    outputs = network.value(inputs.to(network.inside)[:, None], others).double()
    order = sorted(range(1, n), key=lambda j: ideal[j])
    lines = [ValueLine("q(x_1)", "own cell", None, "φ", float(cells[0]), float(ideal[0]), 0.0)]
    for place, j in enumerate(order):
        found = int(decoded[0, place])
        lines.append(ValueLine(f"q(x_{j + 1})", "decoded", None, "ψ", float(found), float(ideal[j]), 0.0))
        at = network.centre_of(torch.tensor(found)).tolist()
        for c, radius in enumerate(_radii(made, network)):
            lines.append(ValueLine(f"x_{j + 1}[{c}]", "centre", c, "ψ", at[c], float(inputs[j, c]), radius))
    return Explanation(
        made,
        X,
        _blocks(network),
        tuple(lines),
        network(inputs[None])[0].double(),
        made.target(X[None])[0],
        outputs,
        ("y_i = f(x_i, centres of the others' cells): the own token is not moved",),
        centres=centres.double(),
    )


def _radii(made: Construction, network: GridModule) -> list[float]:
    """How far a centre may be from a token of its cell: half of equal cells, centres rounded; a place is its own."""
    box, eps = made.target.input_box, torch.finfo(network.inside).eps
    sides = zip(box.lower, box.upper, network.cells, strict=False)
    radii = [float((high - low) / (2 * k)) + eps * float(max(abs(low), abs(high))) for low, high, k in sides]
    return radii + [0.0] * made.target.positioned


def _blocks(network: GridModule) -> tuple[BlockLine, ...]:
    grid = "×".join(map(str, network.cells))
    return (
        BlockLine("φ", None, {f"cells ({grid}) for the own token, and its code": prod(network.cells)}),
        BlockLine("Σ", None, {f"coordinate(s): {_CODES[network.code.split()[0]]}": network.latent_dimension}),
        BlockLine("ψ", None, {"other(s) at most, decoded; then f at their centres": network.n - 1}),
    )

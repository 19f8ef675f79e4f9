"""A Sumformer on cells: how many tokens each cell holds, and the reductions over the centres that stand for them.

Counts must come back exactly; a centre is within half a cell of its token. x itself, outside of reductions, is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.nn.cell_sumformer import CellSumformer
from sumformer.targets import Environment, Reduce, evaluate, to_source
from sumformer.targets.torch_evaluation import TorchOperations, evaluate_tensor
from sumformer.theorems.constructed import Construction

ROOM = 1e-9  # between two ways of adding


def explain_cells(made: Construction, network: CellSumformer, X: Tensor) -> Explanation:
    """X as given."""
    inputs = X.to(network.outside)
    state = network.summarise(inputs[None])
    centres = network.nearest(inputs).double()
    lines = [
        ValueLine(f"x_1[{c}]", "centre", c, "φ", float(centres[0, c]), float(inputs[0, c]), radius)
        for c, radius in enumerate(made.certificate.constants["radius"])
    ]
    start = 0
    for seen, size in network.tables.items():
        lines += _counts(network, seen, inputs, state.total[0, start : start + size], start)
        start += size
    ideal = {part: evaluate_tensor(part, centres[None])[0] for part in network.parts}
    for part, value in zip(network.parts, network.reduced(inputs[None], state), strict=True):
        lines += _reduction(part, value[0, 0], ideal[part][0])
    env = Environment(x=inputs.double(), reduce=ideal.__getitem__)
    outputs = evaluate(network.tree, TorchOperations(torch.float64, X.device), env).expand(len(X), network.width)
    return Explanation(
        made,
        X,
        _blocks(network, int((state.total != 0).sum())),
        tuple(lines),
        network(inputs[None])[0].double(),
        made.target(X[None])[0],
        outputs,
        (
            "φ(x_j) is 1 at the cell of x_j, and 0 at all others, in a table for all reductions that read the same "
            "coordinates; Σ counts tokens, and holds no more of them than that",
            "y_i = f(x_i, …), its reductions over the centres of cells, each as often as it has tokens",
        ),
        centres=centres,
    )


def _counts(
    network: CellSumformer, coordinates: Sequence[int], inputs: Tensor, held: Tensor, start: int
) -> list[ValueLine]:
    """The own cell of a grid over these coordinates, and how many tokens its cells hold."""
    cells = [network.cell_by_hand(token, coordinates) for token in inputs.tolist()]
    named = "" if len(coordinates) == network.d else f", x[{','.join(map(str, coordinates))}]"
    own = float(network.quantise(inputs, coordinates)[0])
    lines = [ValueLine(f"q(x_1){named}", "own cell", None, "φ", own, float(cells[0]), 0.0)]
    for cell in sorted(set(cells)):
        inside, often = float(held[cell]), float(cells.count(cell))
        lines.append(ValueLine(f"Σ cell {cell}{named}", "tokens in it", start + cell, "Σ", inside, often, 0.0))
    return lines


def _reduction(part: Reduce, value: Tensor, ideal: Tensor) -> list[ValueLine]:
    """⊕ over the cells at the own cell, beside the same over a list of centres."""
    lines = []
    for w in range(part.width):
        name = to_source(part) + (f"[{w}]" if part.width > 1 else "")
        allowed = ROOM * (1 + abs(float(ideal[w])))
        lines.append(ValueLine(name, "over centres", None, "ψ", float(value[w]), float(ideal[w]), allowed))
    return lines


def _blocks(network: CellSumformer, occupied: int) -> tuple[BlockLine, ...]:
    grids = " + ".join("×".join(str(network.cells[c]) for c in seen) for seen in network.tables)
    return (
        BlockLine("φ", None, {f"cells ({grids}): a token lies in one of each grid": network.latent_dimension}),
        BlockLine("Σ", None, {"counts that are not 0 here": occupied}),
        BlockLine("ψ", None, {"reductions": len(network.parts)}),
    )

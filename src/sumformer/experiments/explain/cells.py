"""A Sumformer on cells: how many tokens each cell holds, and the reductions over the centres that stand for them.

Counts must come back exactly; a centre is within half a cell of its token. x itself, outside of reductions, is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.nn.cell_sumformer import CellSumformer
from sumformer.targets import Environment, Reduce, evaluate, parse, to_source
from sumformer.targets.torch_evaluation import TorchOperations, evaluate_tensor
from sumformer.theorems.construction import Construction

ROOM = 1e-9  # between two ways of adding


def explain_cells(made: Construction, network: CellSumformer, X: Tensor) -> Explanation:
    """X as given."""
    inputs = X.to(network.outside)
    state = network.summarise(inputs[None])
    cells = [network.cell_by_hand(token) for token in inputs.tolist()]
    centres = network.centre_of(torch.tensor(cells)).double()
    own = ValueLine("q(x_1)", "own cell", None, "φ", float(network.quantise(inputs)[0]), float(cells[0]), 0.0)
    at = network.centre_of(network.quantise(inputs)).tolist()[0]
    lines = [own]
    for c, radius in enumerate(made.certificate.constants["radius"]):
        lines.append(ValueLine(f"x_1[{c}]", "centre", c, "φ", at[c], float(inputs[0, c]), radius))
    for cell in sorted(set(cells)):
        held = float(state.total[0, cell])
        lines.append(ValueLine(f"Σ cell {cell}", "tokens in it", cell, "Σ", held, float(cells.count(cell)), 0.0))
    ideal = {part: evaluate_tensor(part, centres[None])[0] for part in network.parts}
    for part, value in zip(network.parts, network.reduced(inputs[None], state), strict=True):
        lines += _reduction(part, value[0, 0], ideal[part][0])
    env = Environment(x=inputs.double(), reduce=ideal.__getitem__)
    tree = parse(network.expression, network.d)
    outputs = evaluate(tree, TorchOperations(torch.float64, X.device), env).expand(len(X), network.width)
    return Explanation(
        made,
        X,
        _blocks(network, len(set(cells))),
        tuple(lines),
        network(inputs[None])[0].double(),
        made.target(X[None])[0],
        outputs,
        (
            "φ(x_j) is 1 at the cell of x_j, and 0 at all others; Σ counts tokens, and holds no more of them than that",
            "y_i = f(x_i, …), its reductions over the centres of cells, each as often as it has tokens",
        ),
        centres=centres,
    )


def _reduction(part: Reduce, value: Tensor, ideal: Tensor) -> list[ValueLine]:
    """⊕ over the cells at the own cell, beside the same over a list of centres."""
    lines = []
    for w in range(part.width):
        name = to_source(part) + (f"[{w}]" if part.width > 1 else "")
        allowed = ROOM * (1 + abs(float(ideal[w])))
        lines.append(ValueLine(name, "over centres", None, "ψ", float(value[w]), float(ideal[w]), allowed))
    return lines


def _blocks(network: CellSumformer, occupied: int) -> tuple[BlockLine, ...]:
    grid = "×".join(map(str, network.cells))
    return (
        BlockLine("φ", None, {f"cells ({grid}), one of which a token lies in": network.latent_dimension}),
        BlockLine("Σ", None, {"counts, of which not 0 here": occupied}),
        BlockLine("ψ", None, {"reduction": len(network.parts)}),
    )

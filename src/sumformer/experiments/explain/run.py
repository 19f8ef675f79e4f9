"""explain(folder, X): what each part does, which coordinate holds what, and each value beside its ideal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sumformer.errors import InputError, NotSupportedError
from sumformer.experiments.explain.cells import explain_cells
from sumformer.experiments.explain.compiled import explain_compiled
from sumformer.experiments.explain.explanation import Explanation
from sumformer.experiments.explain.grid import explain_grid
from sumformer.experiments.explain.look_up import explain_look_up
from sumformer.experiments.explain.mesh import explain_mesh
from sumformer.experiments.explain.sums import explain_sums
from sumformer.nn.cell_sumformer import CellSumformer
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.expression_sumformer import ExpressionSumformer
from sumformer.nn.grid_module import GridModule
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.nn.positioned import Positioned
from sumformer.nn.symmetric_sumformer import SymmetricSumformer
from sumformer.targets.positions import with_positions
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import load

HOW = "sumformer construct 'x*mean(y)' --epsilon 0.1 --tokens 3 --as transformer --out"


def explain(
    folder: str | Path, X: Tensor | None = None, *, function: Callable[[Tensor], Tensor] | None = None
) -> Explanation:
    """Run a saved network on X (n, d), by default a few tokens spread over the box; `function` as `load` takes it."""
    if not Path(folder).is_dir():
        raise InputError(f"explain: {folder} is not a folder; make one, as with\n  {HOW} {folder}")
    made = load(folder, function=function)
    if isinstance(made.network, DeepTransformer):
        raise NotSupportedError(f"explain: the layers of a {made.certificate.architecture} are shown by {_trace(made)}")
    X = (spread(made) if X is None else X).to(made.network.outside)
    with torch.no_grad():
        made(X[None])  # for its checks of tokens, box and n
        return _explain(made, X.double())


def _explain(made: Construction, X: Tensor) -> Explanation:
    positioned = isinstance(made.network, Positioned)
    network: Any = made.network.network if positioned else made.network
    tokens = with_positions(X[None])[0] if positioned else X
    match network:
        case CompiledTransformer():
            return explain_compiled(made, network, X, tokens)
        case LookUpTransformer():
            return explain_look_up(made, network, X)
        case ExpressionSumformer() | SymmetricSumformer():
            return explain_sums(made, network, X, tokens)
        case MeshSumformer():
            return explain_mesh(made, network, X, tokens)
        case CellSumformer():
            return explain_cells(made, network, X)
        case GridModule():
            return explain_grid(made, network, X, tokens)
    raise NotSupportedError(
        f"explain: nothing is known to say of a {type(network).__name__}; a transformer is explained: {HOW} DIR"
    )


def spread(made: Construction) -> Tensor:
    """A few tokens over the box: as many as the certificate allows, at most 8."""
    tokens, box = made.target.tokens, made.target.input_box
    n = tokens.minimum if tokens.exact else min(max(tokens.minimum, 5), tokens.maximum)
    generator = torch.Generator().manual_seed(0)
    unit = torch.rand(n, box.d, generator=generator, dtype=torch.float64)
    low = torch.tensor([float(a) for a in box.lower], dtype=torch.float64)
    side = torch.tensor([float(2 * r) for r in box.radius], dtype=torch.float64)
    return low + side * unit


def _trace(made: Construction) -> str:
    """The command that shows a deep network's contextual mapping at work."""
    constants, d = made.certificate.constants, made.target.input_box.d
    if constants.get("zero"):
        return "nothing: it has none, the zero network meets this ε"
    words = [f"sumformer trace --tokens {constants['n']} --dim {d} --cells {constants['cells']}"]
    if constants["pattern"] is not None:
        numbers = [str(v) for key, v in constants["pattern"].items() if key != "type"]
        words.append(f"--pattern {constants['pattern']['type'].lower()}:{','.join(numbers)}")
    elif constants["places"] is not None:
        words.append("--positions")
    return " ".join(words)

"""B' of a network on a grid, term by term: tokens at the far ends of their cells, and roundings that all go one way."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tampered import Tampered

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.targets import target
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct, load

Weights = Callable[[dict[str, np.ndarray]], None]


def moved(tmp_path: Path, change: Weights | None, source: Any, epsilon: float, **options: Any) -> Path:
    construct(source, epsilon, **options).save(tmp_path / "net")
    return Tampered(tmp_path / "net", tmp_path / "moved").weights(change or (lambda _: None)).folder


def far_ends(made: Construction, folder: Path) -> list[torch.Tensor]:
    """Tokens (d,) that are as far from their cell's centre as a float64 can be, along all coordinates at once."""
    tensors = load_file(folder / "model.safetensors")
    box, choices = made.target.box, []
    for c in range(made.target.d):
        edges, centres = tensors[f"edges.{c}"].tolist(), tensors[f"centres.{c}"].tolist()
        ends = [float(box.lower[c]), *edges, float(box.upper[c])]
        sides = [(a - m, a) for a, m in zip(ends[:-1], centres, strict=True)]
        sides += [(b - m, float(np.nextafter(b, -np.inf))) for b, m in zip(ends[1:-1], centres[:-1], strict=True)]
        sides.append((ends[-1] - centres[-1], ends[-1]))
        choices.append((max(sides)[1], min(sides)[1]))
    return [torch.tensor(side, dtype=torch.float64) for side in zip(*choices, strict=True)]


def largest_error(made: Construction, tokens: list[torch.Tensor], n: int) -> float:
    """|f − N| at the upper corner of the box, all others being one of the tokens."""
    corner, worst = torch.tensor([[float(v) for v in made.target.box.upper]], dtype=torch.float64), 0.0
    for token in tokens:
        X = torch.cat([corner, token.expand(n - 1, -1)])[None]
        with torch.no_grad():
            worst = max(worst, float((made.target(X) - made.network(X))[0, 0].abs().max()))
    return worst


# ---- cells times slopes


def centre_up(tensors: dict[str, np.ndarray]) -> None:
    tensors["centres.0"][1] += 1 / 32


def centre_down(tensors: dict[str, np.ndarray]) -> None:
    tensors["centres.0"][1] -= 1 / 32


def edge_up(tensors: dict[str, np.ndarray]) -> None:
    tensors["edges.0"][1] += 1 / 16


def edge_down(tensors: dict[str, np.ndarray]) -> None:
    tensors["edges.0"][1] -= 1 / 16


SLOPES = [
    ("sum_others(y)", 4, 3.0, {}),
    ("mean(3*y - x)", 5, 2.4, {}),
    ("min(2*y - x)", 5, 2.0, {}),
    ("max(abs(y - 2))", 3, 1.0, {}),
    ("sum_others(y)", "2..5", 4.0, {}),
    ("sum_others(3*y - mean(y))", 4, 6.75, {}),
    ("sum_others(y)", 20, 19.0, {}),  # one slot for all the others
    ("sum_others(y[0] + y[1])", 3, 18.0, {"d": 2, "box": "0:1,0:8"}),
    ("x*sum_others(-y)/(x + 1/2)", 3, 4 / 3, {}),
    ("sum_others(abs(y)*exp(x))", 3, 5.44, {}),
]


@pytest.mark.parametrize("change", [None, centre_up, centre_down, edge_up, edge_down])
@pytest.mark.parametrize(("source", "n", "slope", "options"), SLOPES)
def test_tokens_at_the_ends_of_their_cells(
    tmp_path: Path, source: str, n: Any, slope: float, options: Any, change: Any
) -> None:
    """Slopes here are constant in the others: what they move f by when all of them are far out is what is found."""
    folder = moved(tmp_path, change, source, slope / 8, n=n, route="grid", **options)
    made, bound = load(folder), check(folder).bound
    worst = largest_error(made, far_ends(made, folder), made.target.tokens.maximum)
    assert worst <= bound <= 1.1 * worst


RULES = [
    ("sum_others(y**2)", 1),
    ("max(y) - min(y)", 1),
    ("sum_others(max(x, 3*y))", 1),
    ("sum_others(max(3*y, x))", 1),
    ("sum_others(min(x, 3*y) + min(2*y, x))", 1),
    ("sum_others(abs(y))", 1),
    ("sum_others(norm(y))", 2),
    ("sum_others(dot(x, y)/(3 + y[1]))", 2),
    ("sum_others(1/(2 + y)**3)", 1),
    ("sum_others(exp(3*y)*(1 - y))", 1),
    ("sum_others(log(2 + y))", 1),
    ("sum_others(sqrt(2 + y))", 1),
    ("sum_others(sin(3*y))", 1),
    ("sum_others(cos(3*y))", 1),
    ("sum_others(tanh(3*y))", 1),
    ("sum_others(sigmoid(3*y))", 1),
    ("cat(mean(y), 5*mean(y), 0*x)", 1),
]


@pytest.mark.parametrize(("source", "d"), RULES)
def test_slopes_of_every_rule(source: str, d: int) -> None:
    """Σ |∂f/∂y_j| by automatic differentiation on cells of all sizes: not above their bound, on small ones near it."""
    f, random = target(source, n=3, d=d, box="-1:1"), np.random.default_rng(0)
    sides = 2 * random.choice([1e-3, 0.1, 0.5, 1.0], size=(200, 1))
    start = -1 + (2 - sides) * random.random((200, 3 * d))
    with np.errstate(all="ignore"):
        bound = Modulus(f.expression, f.box, 3, np.ones(d)).lengths(start, start + sides)
    u = random.choice([0.0, 1.0, 0.5, 0.2], size=(200, 40, 3, d))
    X = torch.tensor(start.reshape(200, 1, 3, d) + sides[:, :, None, None] * u).reshape(-1, 3, d).requires_grad_()
    slopes = [torch.autograd.grad(v.sum(), X, retain_graph=True)[0] for v in f(X)[:, 0].unbind(-1)]
    seen = torch.stack([g[:, 1:].abs().sum((1, 2)) for g in slopes]).amax(0).reshape(200, 40).amax(1).numpy()
    small = sides[:, 0] < 0.01
    assert bool((seen <= bound * (1 + 1e-9)).all())
    assert bool((seen > 0.8 * bound)[small].any())


def test_places_that_are_not_their_centres(tmp_path: Path) -> None:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors["network.centres.1"][1] += 0.25

    folder = moved(tmp_path, change, "sum_others(j)", 0.5, n=3, positions=True, route="grid")
    X = torch.full((1, 3, 1), 0.5, dtype=torch.float64)
    made = load(folder)
    with torch.no_grad():
        off = float((made.target(X) - made.network(X)).abs().max())
    assert 0.25 == off <= check(folder).bound


def total_of_others(X: torch.Tensor) -> torch.Tensor:
    return X.sum(1, keepdim=True) - X


@pytest.mark.parametrize("change", [None, centre_up, edge_down])
def test_a_function_without_a_formula(tmp_path: Path, change: Any) -> None:
    """L = n − 1 for the sum of the others; cells are quarters, so that nothing is rounded."""
    f = sumformer.target(total_of_others, n=4, lipschitz=3.0)
    folder = moved(tmp_path, change, f, 0.4)
    made, bound = load(folder, function=total_of_others), check(folder).bound
    worst = largest_error(made, far_ends(made, folder), 4)
    assert worst <= bound <= 1.1 * worst


# ---- rounding: f of the own token alone, so that nothing is lost to cells

ROUNDED: list[tuple[str, int, str, Callable[[Fraction], Fraction], float]] = [
    ("sum(x + 0*y)", 64, "float32", lambda x: 64 * x, 0.0),
    ("sum((x + 0*y + 4096) - 4096)", 3, "float32", lambda x: 3 * x, 0.0),  # of the body, three times
    ("mean((x + 0*y + 4096) - 4096)", 3, "float32", lambda x: x, 0.0),
    ("16777219*x", 1, "float32", lambda x: 16777219 * x, 1.01),  # 1 for the constant, 1 for the product
    ("16777219*x", 1, "mixed", lambda x: 16777219 * x, 0.0),  # of the output alone
]


@pytest.mark.parametrize(("source", "n", "dtype", "exact", "least"), ROUNDED)
def test_float32_against_rationals(
    tmp_path: Path, source: str, n: int, dtype: str, exact: Callable[[Fraction], Fraction], least: float
) -> None:
    folder = moved(tmp_path, None, source, 4.0, n=n, route="grid", dtype=dtype)
    x = torch.linspace(0, 1, 4001, dtype=torch.float64).float()
    with torch.no_grad():
        got = load(folder).network(x[:, None, None].expand(-1, n, 1))[:, 0, 0]
    off = max(abs(Fraction(v) - exact(Fraction(t))) for v, t in zip(got.tolist(), x.tolist(), strict=True))
    assert least < off <= Fraction(check(folder).bound)

"""A 4.3–4.5 by look-up: steps in the sup norm, ReLU off its ramps and in d_p, refusals before anything is built."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
import torch

from sumformer.certificates.attack import attack
from sumformer.certificates.quadrature import quadrature
from sumformer.errors import InputError, RefusedError, ShapeError
from sumformer.nn import LookUpTransformer
from sumformer.theorems.alberti_2023.faithfulness import faithfulness
from sumformer.theorems.alberti_2023.look_up.code import keys, largest_code, look_up_code
from sumformer.theorems.construction import construct, load
from sumformer.theorems.verification import verify

TARGETS = {"distance to the mean": "abs(x - mean(y))", "max pooling": "max(y)", "range": "max(y) - min(y)"}
ARCHITECTURES = ("transformer", "linformer", "performer")


@pytest.mark.parametrize("cells", [1, 2, 5, 9])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_own_cell_and_sum_determine_the_others(cells: int, n: int):
    code = look_up_code(cells, n)
    stride = keys(code, n)
    found = {
        stride * own + code[own] + sum(code[c] for c in others)
        for own in range(cells)
        for others in combinations_with_replacement(range(cells), n - 1)
    }
    assert len(found) == cells * len(list(combinations_with_replacement(range(cells), n - 1)))
    assert code[-1] == largest_code(cells, n)
    assert sorted(code) == code


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", TARGETS)
def test_steps_meet_the_sup_norm(name: str, n: int, tmp_path: Path):
    made = construct(TARGETS[name], 0.15, n=n, architecture="transformer", route="grid")
    made.save(tmp_path)
    assert (made.certificate.norm, made.certificate.route) == ("sup", "grid")
    verdict = verify(tmp_path)
    assert verdict.verified, verdict.proof.failures
    assert verdict.attack is not None
    assert 0.5 * made.certificate.total < verdict.attack.worst <= made.certificate.total <= 0.15


@pytest.mark.parametrize("options", [{}, {"k": 3}, {"k": 2, "normalised": True}])
def test_the_heads_of_the_other_theorems(options: dict[str, int], tmp_path: Path):
    architecture = "linformer" if options == {"k": 3} else "performer"
    made = construct("max(y) - x", 0.3, n=3, architecture=architecture, route="grid", options=options)
    made.save(tmp_path)
    verdict = verify(tmp_path, attack=False)
    assert verdict.verified, verdict.proof.failures
    plain = construct("max(y) - x", 0.3, n=3, architecture="transformer", route="grid")
    X = torch.rand(200, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(made.network(X), plain.network(X))  # entries of one table, without rounding


@pytest.mark.parametrize("activation", ["step", "relu"])
def test_exactly_f_at_the_cells_centres(activation: str):
    """The definition, token by token: every entry of the table is f at the centres, up to its grain."""
    options = {"activation": activation}
    f = "cat(x[0]*mean(y[1]), max(norm(x - y)))"
    domain = {"n": 2, "d": 2, "box": "-1:1,0:3"}
    epsilon = 4.0 if activation == "step" else 300.0  # d_1 is an integral over a volume of 36, and a sum over tokens
    made = construct(f, epsilon, architecture="transformer", route="grid", options=options, **domain)
    k = made.certificate.constants["cells"]
    assert k > 1
    side = [(Fraction(-1), Fraction(2)), (Fraction(0), Fraction(3))]
    centre = [[float(low + s * Fraction(2 * i + 1, 2 * k)) for i in range(k)] for low, s in side]
    tokens = torch.cartesian_prod(*(torch.tensor(c, dtype=torch.float64) for c in centre))
    pairs = torch.cartesian_prod(torch.arange(len(tokens)), torch.arange(len(tokens)))
    X = tokens[pairs]
    assert (made.network(X) - made.target(X)).abs().max() < 1e-12
    moved = X + 0.49 * torch.tensor([2.0, 3.0], dtype=torch.float64) / k * (2 * torch.rand(X.shape) - 1)
    assert torch.equal(made.network(moved), made.network(X))


@pytest.mark.parametrize("activation", ["step", "relu"])
@pytest.mark.parametrize("architecture", ["transformer", "performer"])
def test_one_token_has_no_code(tmp_path: Path, architecture: str, activation: str):
    """φ = 0 takes no step: none is built, so that no ramp is written which nothing reads."""
    made = construct("x", 0.3, n=1, architecture=architecture, route="grid", options={"activation": activation})
    made.save(tmp_path)
    verdict = verify(tmp_path, attack=False)
    assert verdict.verified, verdict.proof.failures
    first, code = (made.network.blocks[k * (2 if activation == "relu" else 1)].feed_forward for k in (0, 1))
    assert len(first.value_1) > 0 == len(code.value_1) == len(code.value_2)


def test_edges_belong_to_the_upper_cell_and_neighbours_to_the_lower():
    network = construct("max(y)", 0.2, n=2, architecture="transformer", route="grid").network
    edge = float(-network.blocks[0].feed_forward.b_1[0])
    below = torch.nextafter(torch.tensor(edge, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64))
    on, off = (network(torch.full((1, 2, 1), v, dtype=torch.float64)) for v in (edge, float(below)))
    assert float(on[0, 0, 0] - off[0, 0, 0]) == pytest.approx(1 / (len(network.blocks[0].feed_forward.b_1) + 1))


def test_relu_states_its_norm_honestly(tmp_path: Path):
    options = {"activation": "relu"}
    made = construct("abs(x - mean(y))", 0.4, n=3, architecture="transformer", route="grid", options=options)
    c = made.certificate
    assert (c.norm, c.p) == ("d_1", 1.0)
    off, share, (ramp,) = (c.constants[key] for key in ("sup_off_ramps", "ramp_share", "ramps"))
    assert off <= c.epsilon
    assert 0 < share < 0.05
    made.save(tmp_path)
    verdict = verify(tmp_path, attack=False)
    assert verdict.verified, verdict.proof.failures
    measured = quadrature(made.target, made.network, 1.0, points=4096)
    assert 0.1 * c.total < measured.worst <= c.total
    X = torch.rand(4000, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    edges = torch.arange(1, c.constants["cells"], dtype=torch.float64) / c.constants["cells"]
    X[:2000, 0, 0] = edges[torch.arange(2000) % len(edges)] + ramp * (torch.linspace(-0.5, 0.5, 2000).double())
    error = (made.target(X) - made.network(X)).abs().amax((1, 2))
    on = ((X - edges).abs() < ramp / 2 * (1 + 1e-9)).any(-1).any(-1)
    assert bool(on[:2000].all())
    assert float(error[~on].max()) <= off
    assert float(error[on].max()) > off  # ReLU is continuous: on ramps the bound cannot hold


def test_p_and_the_box_enter_the_norm():
    options = {"activation": "relu", "p": 2.0}
    made = construct("max(y)", 4.0, n=2, box="-2:2", architecture="performer", route="grid", options=options)
    assert made.certificate.norm == "d_2"
    scale = (4.0**2 * 2) ** 0.5
    cells = made.certificate.terms[0].bound
    assert cells == pytest.approx(scale * made.certificate.constants["sup_off_ramps"], rel=1e-6)


@pytest.mark.parametrize(("activation", "blocks"), [("step", 3), ("relu", 6)])
def test_faithfulness_counts_steps_apart(activation: str, blocks: int):
    options = {"activation": activation}
    network = construct("max(y)", 0.4, n=2, architecture="linformer", route="grid", options=options).network
    counted = faithfulness(network)
    assert counted.faithful, counted.faults
    assert counted.feed_forward_layers == blocks
    hidden = sum(len(block.feed_forward.b_1) for block in network.blocks)
    assert counted.steps == (hidden if activation == "step" else 0)


def test_saved_loaded_and_padded(tmp_path: Path):
    made = construct("max(y) - x", 0.4, n=2, architecture="linformer", route="grid")
    made.save(tmp_path)
    again = load(tmp_path)
    assert isinstance(again.network, LookUpTransformer)
    X = torch.rand(50, 2, 1, dtype=torch.float64)
    assert torch.equal(again.network(X), made.network(X))
    padded = torch.cat([torch.full((50, 1, 1), torch.nan, dtype=torch.float64), X], 1)
    mask = torch.tensor([0, 1, 1]).expand(50, 3)
    assert torch.equal(made(padded, attention_mask=mask)[:, 1:], made.network(X))
    with pytest.raises(ShapeError, match="exactly n = 2"):
        made.network(torch.rand(1, 3, 1, dtype=torch.float64))


def test_constant_targets_and_single_tokens(tmp_path: Path):
    for i, (source, n) in enumerate((("1/3 + 0*x", 2), ("1/2 + 0*x", 2), ("0*x", 2), ("x**2", 1))):
        made = construct(source, 0.3, n=n, architecture="transformer", route="grid")
        made.save(tmp_path / str(i))
        verdict = verify(tmp_path / str(i), attack=False)
        assert verdict.verified, verdict.proof.failures
        assert attack(made.target, made.network).worst <= made.certificate.total


def test_a_table_that_does_not_fit_is_refused_with_the_epsilon_that_does():
    with pytest.raises(RefusedError, match="table entries") as refusal:
        construct("max(y)", 1e-4, n=4, architecture="transformer", route="grid")
    reachable = refusal.value.reachable
    assert reachable is not None
    made = construct("max(y)", reachable, n=4, architecture="transformer", route="grid")
    assert made.certificate.total <= reachable
    with pytest.raises(RefusedError, match="table entries"):
        construct("max(y)", 0.95 * reachable, n=4, architecture="transformer", route="grid")


def test_refusals_and_wrong_options():
    def ask(source: str = "max(y)", epsilon: float = 0.3, route: str | None = "grid", **rest: object) -> None:
        domain = {"n": 2, "architecture": "transformer", **rest}
        construct(source, epsilon, route=route, **domain)  # type: ignore[arg-type]

    with pytest.raises(RefusedError, match="one number of tokens"):
        ask(n="..4")
    with pytest.raises(RefusedError, match="float64"):
        ask(dtype="float32")
    with pytest.raises(RefusedError, match="places of tokens"):
        ask("x*i", positions=True)
    with pytest.raises(InputError, match="activation"):
        ask(options={"activation": "tanh"})
    with pytest.raises(InputError, match="sup norm"):
        ask(p=2.0)
    with pytest.raises(InputError, match="route='grid'"):
        ask("x - mean(y)", route=None, options={"activation": "relu"})
    with pytest.raises(RefusedError, match="look-up table"):
        ask(box="1e12:1000000000001", epsilon=1e-3)

"""Every kind of constructed network in onnxruntime, in float64: for one n where it is made for one, free where not.

Where a network is a look-up (steps, ramps, decoded cells), inputs well inside cells give the same entry of the same
table in both, to the last bit. Elsewhere both compute one formula, its sums in another order: TOLERANCE.
"""

import logging

import onnx
import pytest
import torch

import sumformer
from sumformer.errors import InputError, NotSupportedError
from sumformer.interop.onnx import export_onnx, onnx_error, onnx_session
from sumformer.nn import GridSumformer, SumMixer, cell_sumformer
from sumformer.nn.patterns import Window
from sumformer.testing import TOLERANCE

ROUNDING = TOLERANCE[torch.float64]
GRID = {"architecture": "transformer", "route": "grid"}
# name: target, ε, how; the n of the file; how far apart
KINDS = {
    "transformer": ("x*mean(sin(y))", 0.1, {"architecture": "transformer"}, "free", ROUNDING),
    "linformer": ("x*mean(y)", 0.1, {"n": 3, "architecture": "linformer"}, "3", ROUNDING),
    "performer": ("x*mean(y)", 0.1, {"n": 3, "architecture": "performer"}, "3", ROUNDING),
    "look-up-step": ("max(y)", 0.4, {"n": 2, **GRID, "options": {"activation": "step"}}, "2", 0.0),
    "look-up-relu": ("max(y)", 0.4, {"n": 2, **GRID, "options": {"activation": "relu"}}, "2", 0.0),
    "deep": ("x+mean(y)", 1.2, {"n": 2, "architecture": "deep-transformer"}, "2", 0.0),
    "sparse": ("x+mean(y)", 0.9, {"n": 2, "architecture": "sparse-transformer", "pattern": Window(1)}, "2", 0.0),
    "symmetric": ("x*mean(exp(y))", 0.1, {"n": 3, "route": "symmetric"}, "3", ROUNDING),
    "cells": ("max(abs(x - y))", 0.1, {"route": "cells"}, "free", ROUNDING),
    "cells-of-others": ("x*mean_others(abs(x - y)) + max(y)", 0.2, {"route": "cells"}, "free", ROUNDING),
    "positions": ("x*i + mean(y)", 0.1, {"n": 3, "positions": True}, "free", ROUNDING),
    "places-of-a-grid": ("x*i + max(y)", 2.0, {"n": 4, "positions": True, "route": "grid"}, "≤ 4", ROUNDING),
}


def inputs(batch, n, d=1, cells=1):
    """Tokens in the middle 2/5 of cells along each side."""
    make = torch.Generator().manual_seed(batch)
    place = torch.randint(cells, (batch, n, d), generator=make)
    return (place + 0.3 + 0.4 * torch.rand(batch, n, d, generator=make, dtype=torch.float64)) / cells


def told(path):
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}["n"]


def compare(network, path, limit, lengths, d=1, cells=1):
    for n in lengths:
        (none,) = onnx_session(path).run(None, {"x": inputs(0, n, d, cells).numpy()})
        assert none.shape == network(inputs(0, n, d, cells)).shape
    for batch in (1, 50):
        for n in lengths:
            assert onnx_error(network, path, inputs(batch, n, d, cells)) <= limit, (batch, n)


SLOW = {"places-of-a-grid"}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in KINDS])
def test_constructed(kind, tmp_path, caplog):
    source, epsilon, how, n, limit = KINDS[kind]
    made = sumformer.construct(source, epsilon, **how)
    path = export_onnx(made.network, tmp_path / "network.onnx", inputs(1, 1))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert told(path) == n
    cells = made.certificate.constants.get("cells", 1) if limit == 0 else 5
    compare(made.network, path, limit, {"free": (2, 9), "≤ 4": (2, 3, 4)}.get(n) or (int(n),), cells=cells)
    assert made.network.exact_n == (int(n) if n.isdigit() else None)
    if n.isdigit():
        with pytest.raises(Exception, match="Got invalid dimensions for input"):
            onnx_error(made.network, path, inputs(1, int(n) + 1))


def grid(code, n=4, cells=(6, 5)):
    network = GridSumformer("x[0]*max(y[1]) + mean_others(y)", 2, n, cells, code, "float64").requires_grad_(False)
    for c, count in enumerate(cells):
        network.edges[c].copy_(torch.arange(1, count) / count)
        network.centres[c].copy_((torch.arange(count) + 0.5) / count)
    return network


@pytest.mark.parametrize(
    ("code", "n"),
    [("lanes", "≤ 4"), pytest.param("lanes n+1", "≤ 4", marks=pytest.mark.slow), ("syndrome", "4")],
)
def test_a_grid_sumformer_in_every_float_code(code, n, tmp_path):
    """ψ is a formula, so its sums may round; a cell decoded wrongly would be off by 1/6."""
    network = grid(code)
    path = export_onnx(network, tmp_path / "network.onnx", inputs(1, 1, 2))
    assert told(path) == n
    compare(network, path, ROUNDING, (4,) if n == "4" else (2, 3, 4), d=2, cells=30)
    ties = inputs(1, 1, 2).expand(3, 4, 2).clone()
    ties[1, 0] = ties[2, :2] = 0.9
    assert onnx_error(network, path, ties) <= ROUNDING


def test_python_integers_have_no_graph(tmp_path):
    with pytest.raises(NotSupportedError, match=r"Python integers .* code 'lanes' or 'syndrome'"):
        export_onnx(grid("integer"), tmp_path / "network.onnx", inputs(1, 1, 2))
    assert not list(tmp_path.iterdir())


def twice_the_others(X):
    return 2 * (X.sum(1, keepdim=True) - X)


def through_python(X):
    return torch.tensor([[[2 * v for v in token] for token in row] for row in X.tolist()], dtype=X.dtype)


def test_a_function_known_by_its_values(tmp_path):
    """What F does with tensors is traced."""
    network = sumformer.construct(sumformer.target(twice_the_others, n=3, lipschitz=4.0), 2.0).network
    path = export_onnx(network, tmp_path / "network.onnx", inputs(1, 1))
    compare(network, path, ROUNDING, (2, 3), cells=10)


@pytest.mark.slow
def test_a_function_outside_of_torch_has_no_graph(tmp_path):
    network = sumformer.construct(sumformer.target(through_python, n=3, lipschitz=4.0), 2.0).network
    with pytest.raises(NotSupportedError, match="through_python cannot be traced"):
        export_onnx(network, tmp_path / "network.onnx", inputs(1, 1))


def test_with_a_mask_n_places_are_kept(tmp_path):
    how = {"n": 2, **GRID, "options": {"activation": "step"}}
    network = sumformer.construct("max(y)", 0.4, **how).network
    path = export_onnx(network, tmp_path / "network.onnx", inputs(1, 1), masked=True)
    mask = torch.tensor([[1, 0, 1, 0, 0], [0, 0, 0, 1, 1]])
    assert onnx_error(network, path, inputs(2, 5, cells=2), mask) == 0
    deep = sumformer.construct("x+mean(y)", 0.9, n=2, architecture="deep-transformer").network
    for d, network in ((1, deep), (2, grid("lanes"))):
        with pytest.raises(NotSupportedError, match=r"without padding|unmasked"):
            export_onnx(network, tmp_path / "other.onnx", inputs(1, 1, d), masked=True)


def test_a_construction_is_exported_for_what_is_certified(tmp_path):
    """A Transformer of a sum has n in its weights, where the module alone does not know it."""
    made = sumformer.construct("x*sum(y)", 0.1, n=3, architecture="transformer")
    path = export_onnx(made, tmp_path / "network.onnx")
    assert told(path) == "3"
    compare(made.network, path, ROUNDING, (3,), cells=5)
    with pytest.raises(Exception, match="Got invalid dimensions for input"):
        onnx_error(made.network, path, inputs(1, 4))
    facts = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert facts["target"] == "x*sum(y)"
    assert repr(made.certificate.total) in facts["certificate"]
    with pytest.raises(InputError, match="expected an example"):
        export_onnx(made.network, tmp_path / "other.onnx")


def test_a_mask_that_is_missing_is_named(tmp_path):
    net, x = SumMixer(4), torch.rand(1, 3, 4)
    path = export_onnx(net, tmp_path / "a.onnx", x, masked=True)
    with pytest.raises(InputError, match="give mask="):
        onnx_error(net, path, x)


@pytest.mark.parametrize(
    "source", ["0.1*x + mean(y)", "(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)", "1e40*x/(1e40 + mean(y))"]
)
def test_constants_have_the_precision_of_the_network(source, tmp_path):
    """An exporter that keeps them in float32 would be off by 1e-9, or by everything."""
    made = sumformer.construct(source, 1e-9)
    x = inputs(2, 5)
    (got,) = onnx_session(export_onnx(made, tmp_path / "a.onnx")).run(None, {"x": x.numpy()})
    assert float((torch.from_numpy(got) - made(x)).abs().max()) <= made.certificate.total
    assert onnx_error(made, tmp_path / "a.onnx", x) < ROUNDING


def test_a_changed_network_is_not_exported_with_a_certificate(tmp_path):
    made = sumformer.construct("mean(exp(x*y))", 1e-2)
    with torch.no_grad():
        next(made.network.parameters()).mul_(1.5)
    with pytest.raises(InputError, match="no longer those"):
        export_onnx(made, tmp_path / "a.onnx")


def test_cells_with_padding_and_by_tokens(tmp_path, monkeypatch):
    """Where all pairs of cells would be too many the graph takes tokens and cells; tokens on edges are in the same."""
    made = sumformer.construct("max(norm(x - y)*y) - mean_others(norm(x - y))", 0.4, d=2, route="cells")
    X = torch.rand(3, 7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X[0, :, 0], X[1, 2:] = made.network.edges[0][:7], X[1, :1]
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [0, 1, 1, 0, 0, 0, 1]])
    for pairs in (cell_sumformer.TRACED, 1):
        monkeypatch.setattr(cell_sumformer, "TRACED", pairs)
        path = export_onnx(made.network, tmp_path / f"{pairs}.onnx", X, masked=True)
        assert onnx_error(made.network, path, X, mask) <= ROUNDING

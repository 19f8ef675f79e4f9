"""`fused` and `pattern` of the deep and the sparse Transformer, in Python and on the command line."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

import sumformer
from sumformer.cli.app import app
from sumformer.errors import InputError, RefusedError
from sumformer.nn import patterns as sparse
from sumformer.nn.token_stack import TokenStack

DEEP, SPARSE = "deep-transformer", "sparse-transformer"


@pytest.mark.parametrize("architecture", [DEEP, SPARSE])
def test_a_fused_network_has_the_same_results_and_is_verified(architecture, tmp_path):
    plain = sumformer.construct("x+mean(y)", 0.5, architecture=architecture, n=2)
    fused = sumformer.construct("x+mean(y)", 0.5, architecture=architecture, n=2, fused=True)
    X = torch.rand(500, 2, 1, dtype=torch.float64)
    assert [s.fused for s in fused.network.layers if isinstance(s, TokenStack)].count(True) == 1
    assert torch.equal(plain(X), fused(X))
    assert fused.certificate == plain.certificate
    fused.save(tmp_path)
    assert sumformer.verify(tmp_path).verified


def test_fused_on_the_command_line(tmp_path):
    out = str(tmp_path / "net")
    arguments = ["construct", "x+mean(y)", "-n", "2", "-e", "0.5", "--as", DEEP, "--fused", "-o", out, "--no-report"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    layers = sumformer.load(out).network.layers
    assert [s.fused for s in layers if isinstance(s, TokenStack)].count(True) == 1


@pytest.mark.parametrize(
    ("architecture", "fused", "said"),
    [
        ("sumformer", True, "fused is that of architecture .--as. deep-transformer or sparse-transformer"),
        ("transformer", True, "does not know fused"),
        (DEEP, "yes", "expected fused True or False"),
        (DEEP, 1, "expected fused True or False"),
    ],
)
def test_fused_where_it_is_no_option(architecture, fused, said):
    with pytest.raises(InputError, match=said):
        sumformer.construct("x+mean(y)", 0.5, architecture=architecture, n=2, fused=fused)


def test_a_pattern_by_its_name():
    text, pattern = (
        sumformer.construct("x+mean(y)", 1.5, architecture=SPARSE, n=4, pattern=given).certificate
        for given in ("strided:2", sparse.Strided(2))
    )
    assert text.constants["pattern"]["type"] == "Strided"
    assert text == pattern


def test_a_pattern_that_is_none():
    for given, said in (
        ("window", r"pattern 'window': expected the numbers w"),
        (2, "expected a pattern, as strided:2"),
    ):
        with pytest.raises(InputError, match=said):
            sumformer.construct("x+mean(y)", 0.5, architecture=SPARSE, n=2, pattern=given)
    with pytest.raises(RefusedError, match="does not meet Assumption 1"):
        sumformer.construct("x+mean(y)", 0.5, architecture=SPARSE, n=3, pattern=sparse.Window(0))

"""Without a GPU the Triton kernels run in Triton's interpreter, where installed; it must be told before import."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy
import pytest
import torch

from sumformer.kernels import evaluate_expression, feature_sums, products, short_mix

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels themselves, on small tiles; skips with the reason where they cannot be run."""
    if find_spec("triton") is None:
        pytest.skip("triton is not installed")
    if tuple(int(v) for v in numpy.__version__.split(".")[:2]) >= (2, 4):
        pytest.skip("Triton's interpreter needs NumPy below 2.4")
    if torch.cuda.is_available():
        pytest.skip("a GPU runs the compiled kernels (tests marked gpu)")
    for module in (products, feature_sums, evaluate_expression):
        monkeypatch.setattr(module, "_interpreted", True)
    for name, size in (("_ROWS", 4), ("_COLS", 16), ("_PROGRAMS", 4), ("_TILE", 16), ("_DEPTH", 16)):
        monkeypatch.setattr(products, name, size)
    for name, sizes in (
        ("SHAPES", {short_mix.MOST: (16, 8, 8, 8, 4, 16, 1, 1)}),
        ("_ROWS", 16),
        ("_INNER", 32),
    ):
        monkeypatch.setattr(short_mix, name, sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the interpreter's own, of NumPy
        yield

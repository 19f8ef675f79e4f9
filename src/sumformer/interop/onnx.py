"""ONNX: a module with dynamic batch and n, written to a file and compared with the module in onnxruntime."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from sumformer.errors import MissingDependencyError
from sumformer.testing import relative_error


def export_onnx(module: nn.Module, path: str | Path, example: Tensor) -> Path:
    """Write `module` for inputs (batch, n, d), batch and n free; `example` only gives d and the dtype."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingDependencyError("onnx and onnxscript", "export to ONNX", "onnx") from None
    shapes = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("n")},)
    # Sizes 0 and 1 would be taken for constants: trace with others.
    traced = torch.zeros(2, 7, example.shape[-1], dtype=example.dtype) + example.reshape(-1, example.shape[-1])[0]
    registry = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = registry.level
    registry.setLevel(logging.ERROR)  # it reports optional packages that are not there
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own deprecations
            program = torch.onnx.export(module, (traced,), dynamo=True, dynamic_shapes=shapes, verbose=False)
    finally:
        registry.setLevel(level)
    if program is None:
        raise AssertionError("torch.onnx.export(dynamo=True) returns a program")
    program.save(str(path))
    return Path(path)


def onnx_error(module: nn.Module, path: str | Path, x: Tensor) -> float:
    """The relative difference between the exported graph in onnxruntime and the module on x."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependencyError("onnxruntime", "checking an export", "onnx") from None
    session = onnxruntime.InferenceSession(str(path))
    (got,) = session.run(None, {session.get_inputs()[0].name: x.detach().numpy()})
    with torch.no_grad():
        wanted = module(x)
    return relative_error(torch.from_numpy(got), wanted)

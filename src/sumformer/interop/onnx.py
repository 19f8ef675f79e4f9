"""ONNX: a module with dynamic batch and n, written to a file and compared with the module in onnxruntime.

Inputs are `x` (batch, n, d), or tokens (batch, n), and the mask by the module's own name for it, where one is asked
for. Dropout is off. What a module checks in Python is not in the file: onnxruntime stops on its own at an index or a
size that does not fit, such as more than n_max tokens.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import MissingDependencyError, NotSupportedError
from sumformer.testing import relative_error

MAX_TOKENS = 2**22  # how far the sums of a causal Performer, unrolled, reach
_TRACED = (2, 7)  # sizes 0 and 1 would be taken for constants


def export_onnx(
    module: nn.Module, path: str | Path, example: Tensor, masked: bool = False, is_causal: bool = False
) -> Path:
    """Write `module`, batch and n free; `example` (batch, n, …) only gives the width and the dtype.

    `masked` adds the mask as a second input, `attention_mask` (int64, 1 = keep) or `key_padding_mask` (bool, True =
    ignore). `is_causal` fixes causal order.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingDependencyError("onnx and onnxscript", "export to ONNX", "onnx") from None
    x = example[:1, :1].expand(*_TRACED, *example.shape[2:]).clone()
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("n", max=MAX_TOKENS if is_causal else None)}
    first = next(iter(inspect.signature(module.forward).parameters))
    keywords: dict[str, Any] = {"is_causal": True} if is_causal else {}
    shapes: dict[str, Any] = {first: sizes} | dict.fromkeys(keywords)
    if masked:
        name = _mask_name(module)
        dtype = torch.int64 if name == "attention_mask" else torch.bool
        keywords[name], shapes[name] = torch.ones(_TRACED, dtype=dtype, device=x.device), sizes
    with _evaluating(module), _quiet():
        try:
            program = torch.onnx.export(
                module, (x,), kwargs=keywords, dynamo=True, dynamic_shapes=shapes, verbose=False
            )
        except torch.onnx.OnnxExporterError as error:
            raise NotSupportedError(f"export_onnx: {type(module).__name__} has no ONNX form: {error}") from error
    if program is None:
        raise AssertionError("torch.onnx.export(dynamo=True) returns a program")
    _check_free(module, program)
    program.save(str(path))
    return Path(path)


def onnx_session(path: str | Path) -> Any:
    """The file in onnxruntime, at its own precision.

    Only the basic optimisations are on: the extended ones move factors into attributes, which ONNX holds in float32,
    and a float64 graph would answer to 8 digits.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependencyError("onnxruntime", "running an export", "onnx") from None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        return onnxruntime.InferenceSession(str(path), options)
    except Exception as error:  # onnxruntime's classes are not public
        if type(error).__name__ != "NotImplemented":
            raise
        raise NotSupportedError(
            f"onnxruntime lacks an operation of {Path(path).name} in its dtype ({error}); "
            "the file is valid for other runtimes, or export module.float()"
        ) from error


def onnx_error(
    module: nn.Module, path: str | Path, x: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> float:
    """The relative difference between the exported graph in onnxruntime and the module on x."""
    session = onnx_session(path)
    inputs = [x] if mask is None else [x, mask]
    names = [given.name for given in session.get_inputs()]
    (got,) = session.run(None, {name: y.detach().numpy() for name, y in zip(names, inputs, strict=True)})
    keywords: dict[str, Any] = {"is_causal": True} if is_causal else {}
    keywords |= {} if mask is None else {_mask_name(module): mask}
    with torch.no_grad(), _evaluating(module):
        wanted = module(x, **keywords)
    return relative_error(torch.from_numpy(got), wanted)


def _mask_name(module: nn.Module) -> str:
    for name in ("attention_mask", "key_padding_mask"):
        if name in inspect.signature(module.forward).parameters:
            return name
    raise NotSupportedError(f"export_onnx: {type(module).__name__} takes no mask; export it with masked=False")


def _check_free(module: nn.Module, program: Any) -> None:
    """Tracing can turn a size into a constant without a word, where Python code looks at its value."""
    for given in program.model.graph.inputs:
        fixed = [
            f"{name} = {size}" for name, size in zip(("batch", "n"), given.shape, strict=False) if type(size) is int
        ]
        if fixed:
            raise NotSupportedError(
                f"export_onnx: {type(module).__name__} fixes {' and '.join(fixed)} in the graph; "
                "let its forward use sizes only in shapes and tensors, not in float(n), range(n) or if n"
            )


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's own deprecations, and its report of optional packages that are not there."""
    registry = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = registry.level
    registry.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        registry.setLevel(level)

"""ONNX: a module with dynamic batch and n, written to a file and compared with the module in onnxruntime.

Inputs are `x` (batch, n, d), or tokens (batch, n), and the mask by the module's own name for it, where one is asked
for. A module made for one n (`exact_n`) has that n in the file, and only the batch is free; with a mask the places are
free and n of them are to be kept. Dropout is off. What a module checks in Python is not in the file: onnxruntime stops
on its own at an index or a size that does not fit, such as more than n_max tokens.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, MissingDependencyError, NotSupportedError, SumformerError
from sumformer.targets.domain import MAX_TOKENS as MOST
from sumformer.testing import relative_error
from sumformer.theorems.constructed import Construction

MAX_TOKENS = 2**22  # how far the sums of a causal Performer, unrolled, reach
_MASKS = {"tensor(int64)": torch.int64, "tensor(bool)": torch.bool}  # as onnxruntime writes the dtype
_BATCH, _TOKENS = 2, 7  # as traced: sizes 0 and 1 would be taken for constants


@dataclass(frozen=True)
class _Subject:
    """What is exported: a module, for exactly `exact` tokens or at most `most`, and what the file says about it.

    `limit` is the most that the module itself can take.
    """

    module: nn.Module
    example: Tensor
    exact: int | None
    most: int | None
    limit: int | None
    facts: dict[str, str]

    def traced(self, masked: bool) -> tuple[int, bool]:
        """With how many tokens to trace, and whether the file is to be for that many only."""
        if masked:
            return _TOKENS, False
        if self.exact is not None:
            return self.exact, True
        if self.most is not None and self.most < 3:
            return self.most, True  # too few for two sizes that are neither 0 nor 1
        return _TOKENS if self.most is None else min(_TOKENS, self.most), False


def export_onnx(
    module: nn.Module | Construction,
    path: str | Path,
    example: Tensor | None = None,
    masked: bool = False,
    is_causal: bool = False,
) -> Path:
    """Write `module`, batch and n free; `example` (batch, n, …) only gives the width and the dtype.

    `masked` adds the mask as a second input, `attention_mask` (int64, 1 = keep) or `key_padding_mask` (bool, True =
    ignore). `is_causal` fixes causal order. The file's metadata say for which `n` it is: "free", "≤ 8", or a number;
    where it is a number (`exact_n` of the module), an unmasked file takes (batch, n, …) with that n only.
    A construction needs no example; its file is for the n of its certificate, and says what is certified.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingDependencyError("onnx and onnxscript", "export to ONNX", "onnx") from None
    if Path(path).is_dir():
        raise InputError(f"export_onnx: expected the name of a file, as model.onnx; {path} is a folder")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    subject = _subject(module, example)
    module, example = subject.module, subject.example
    n, fixed = subject.traced(masked)
    x = example[:1, :1].expand(_BATCH, n, *example.shape[2:]).clone()
    sizes = {0: torch.export.Dim("batch")}
    if not fixed:
        sizes[1] = torch.export.Dim("n", max=None if masked else subject.limit or (MAX_TOKENS if is_causal else None))
    first = next(iter(inspect.signature(module.forward).parameters))
    keywords: dict[str, Any] = {"is_causal": True} if is_causal else {}
    shapes: dict[str, Any] = {first: sizes} | dict.fromkeys(keywords)
    if masked:
        name = _mask_name(module)
        dtype = torch.int64 if name == "attention_mask" else torch.bool
        keywords[name], shapes[name] = torch.ones(_BATCH, n, dtype=dtype, device=x.device), sizes
    with torch.no_grad(), _evaluating(module), _quiet():
        try:
            program = torch.onnx.export(
                module, (x,), kwargs=keywords, dynamo=True, dynamic_shapes=shapes, verbose=False
            )
        except torch.onnx.OnnxExporterError as error:
            raise NotSupportedError(f"export_onnx: {type(module).__name__} has no ONNX form: {_why(error)}") from error
    if program is None:
        raise AssertionError("torch.onnx.export(dynamo=True) returns a program")
    _check_free(module, program, fixed)
    _check_sums(module, program)
    _describe(subject, program, n if fixed else None)
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
    subject: nn.Module | Construction, path: str | Path, x: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> float:
    """The relative difference between the exported graph in onnxruntime and the module, or construction, on x."""
    module: nn.Module = subject.network if isinstance(subject, Construction) else subject
    session = onnx_session(path)
    given = session.get_inputs()
    names = [one.name for one in given]
    if len(names) != (1 if mask is None else 2):
        asked = "it was exported with a mask: give mask=" if mask is None else "it was exported without a mask"
        raise InputError(f"onnx_error: {Path(path).name} takes {', '.join(names)}; {asked}")
    inputs = [x] if mask is None else [x, mask.to(_MASKS.get(given[1].type, mask.dtype))]
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


def _subject(given: nn.Module | Construction, example: Tensor | None) -> _Subject:
    if isinstance(given, Construction):
        given.check_kept(thorough=True)
        c, tokens, network = given.certificate, given.target.tokens, given.network
        one = torch.zeros(1, 1, given.target.input_box.d, dtype=network.outside)
        facts = {
            "target": c.target,
            "box": c.box,
            "tokens": c.tokens,
            "certificate": f"of the network in torch: {c.norm} error ≤ {c.total!r}",
        }
        most = None if tokens.maximum == MOST else tokens.maximum
        exact = tokens.maximum if tokens.exact else None
        return _Subject(network, one if example is None else example, exact, most, _limit(network), facts)
    if example is None:
        raise InputError("export_onnx: expected an example (batch, n, …) of the module's width and dtype")
    most = _limit(given)
    return _Subject(given, example, getattr(given, "exact_n", None), most, most, {})


def _limit(module: nn.Module) -> int | None:
    """The least `n_max` of its parts."""
    limits = (getattr(part, "n_max", None) for part in module.modules())
    return min((n for n in limits if isinstance(n, int)), default=None)


def _describe(subject: _Subject, program: Any, fixed: int | None) -> None:
    """For how many tokens the file is, in its metadata; with a mask, how many to keep."""
    exact, name = fixed or subject.exact, type(subject.module).__name__
    n = str(exact) if exact is not None else "free" if subject.most is None else f"≤ {subject.most}"
    program.model.metadata_props.update(module=name, n=n, **subject.facts)
    program.model.doc_string = f"{name} of sumformer; number of tokens: {n}"


def _why(error: BaseException) -> str:
    """Our own refusal, where tracing met one, else what the exporter says."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SumformerError):
        cause = cause.__cause__ or cause.__context__
    return str(error if cause is None else cause)


def _check_free(module: nn.Module, program: Any, fixed: bool) -> None:
    """Tracing can turn a size into a constant without a word, where Python code looks at its value."""
    names = ("batch",) if fixed else ("batch", "n")
    for given in program.model.graph.inputs:
        constant = [f"{name} = {size}" for name, size in zip(names, given.shape, strict=False) if type(size) is int]
        if constant:
            raise NotSupportedError(
                f"export_onnx: {type(module).__name__} fixes {' and '.join(constant)} in the graph; "
                "let its forward use sizes only in shapes and tensors, not in float(n), range(n) or if n"
            )


def _check_sums(module: nn.Module, program: Any) -> None:
    """onnxruntime adds the rows of a ScatterND on several threads, so that those of one place are lost at random."""
    for node in program.model.graph.all_nodes():
        adds = node.op_type == "ScatterND" and node.attributes.get_string("reduction", "none") != "none"
        if adds:
            raise NotSupportedError(
                f"export_onnx: {type(module).__name__} adds rows in place (index_add, accumulating index_put), which "
                "onnxruntime does in a race; scatter_add has a form that it does in order"
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
    """Without the exporter's own deprecations, its report of optional packages, and of types that it guesses."""
    names = ("torch.onnx._internal.exporter._registration", "onnx_ir")
    loggers = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in loggers.items():
            logger.setLevel(level)

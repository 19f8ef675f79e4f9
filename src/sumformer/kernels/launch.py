"""kernel[grid](…) by a compiled kernel that is remembered: Triton's own look-up takes longer than a short kernel runs.

The key holds the kernel, its device, the constants, the dtypes and `shapes`, the integers Triton may specialise on;
`lengths` must be arguments that it does not (`do_not_specialize`), but for those that take 64 bits. Pointers that are
not aligned go Triton's way; so does everything while a profiler of Triton's looks on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

_VERSIONS = ("3.6",)
"""Of Triton, whose compiled kernels are known to be called as they are here; others look up themselves."""
_compiled: dict[tuple[Any, ...], tuple[Any, ...]] = {}


class _Block:
    """What a compiled kernel reads of a descriptor; Triton's own checks its numbers each time it is made."""

    __slots__ = ("base", "shape", "strides")
    padding = "zero"

    def __init__(self, tensor: Tensor) -> None:
        self.base, self.shape, self.strides = tensor, tensor.shape, tensor.stride()


def launch(
    kernel: Any,
    grid: tuple[int, int],
    tensors: tuple[Tensor, ...],
    lengths: tuple[float, ...],
    shapes: tuple[int, ...],
    constants: tuple[Any, ...],
    described: tuple[tuple[Tensor, list[int]], ...] = (),
    first: Callable[[], None] | None = None,
    **options: int,
) -> None:
    """The arguments in the kernel's order: descriptors, tensors, lengths, shapes, constants; grid of two axes.

    Descriptors are of tensors on the device of the first, as all others are, with blocks that `constants` tell. Where
    the compiled kernel is not known yet, `first` is called before it is asked for.
    """
    places = [tensor.data_ptr() for tensor in tensors]
    aligned = reduce(or_, places) % 16 == 0
    dtypes = (*[t.dtype for t, _ in described], *[t.dtype for t in tensors])
    device = tensors[0].device
    key = (id(kernel), device, constants, shapes, dtypes, max(lengths) < 2**31, *options.values())
    known = _compiled.get(key) if aligned else None
    if known is not None:
        run, function, metadata, runtime, _ = known
        if not (_calls(runtime.launch_enter_hook) or _calls(runtime.launch_exit_hook)):
            # a tensor would be asked for its place, and the driver whose that is; a number is not
            arguments = (*[_Block(t) for t, _ in described], *places, *lengths, *shapes, *constants)
            run(*grid, 1, current_stream(device), function, metadata, None, None, None, *arguments)
            return
    if known is None and first is not None:
        first()
    descriptors = [_descriptor(*pair) for pair in described]
    found = kernel[grid](*descriptors, *tensors, *lengths, *shapes, *constants, **options)
    if aligned and tensors[0].is_cuda and _version() in _VERSIONS:
        begin = len(descriptors) + len(tensors)
        if not all(parameter.do_not_specialize for parameter in kernel.params[begin : begin + len(lengths)]):
            raise AssertionError(f"launch: {kernel} is compiled for its lengths")
        _compiled[key] = found.run, found.function, found.packed_metadata, _runtime(), kernel  # which keeps its id


def _descriptor(tensor: Tensor, block: list[int]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(tensor, block)


def current_stream(device: torch.device) -> int:
    """The driver's name for it."""
    return torch._C._cuda_getCurrentRawStream(device.index)


def _calls(hook: Any) -> Any:
    """What a hook of Triton's calls: a chain of them, or one, or none."""
    return getattr(hook, "calls", hook)


@cache
def _version() -> str:
    import triton

    return ".".join(triton.__version__.split(".")[:2])


def _runtime() -> Any:
    """Where Triton keeps its hooks."""
    from triton import knobs

    return knobs.runtime

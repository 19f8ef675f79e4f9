"""kernel[grid](…) by a compiled kernel that is remembered: Triton's own look-up takes longer than a short kernel runs.

The key holds the kernel, its device, the constants, the dtypes and `shapes`, the integers Triton may specialise on;
`lengths` must be arguments that it does not (`do_not_specialize`), but for those that take 64 bits. Pointers that are
not aligned go Triton's way.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

_compiled: dict[tuple[Any, ...], tuple[Any, Any]] = {}
_NONE = None, None


def launch(
    kernel: Any,
    grid: tuple[int, int],
    tensors: tuple[Tensor, ...],
    lengths: tuple[float, ...],
    shapes: tuple[int, ...],
    constants: tuple[Any, ...],
    descriptors: tuple[Any, ...] = (),
    **options: int,
) -> None:
    """The arguments in the kernel's order: descriptors, tensors, lengths, shapes, constants; grid of two axes.

    Descriptors are of the first tensor's dtype, with blocks that `constants` tell.
    """
    places = 0
    for tensor in tensors:
        places |= tensor.data_ptr()
    dtypes = tuple([t.dtype for t in tensors])
    key = (id(kernel), tensors[0].device, constants, shapes, dtypes, max(lengths) < 2**31, *options.values())
    known, _ = _compiled.get(key, _NONE) if places % 16 == 0 else _NONE
    if known is not None:
        known[(*grid, 1)](*descriptors, *tensors, *lengths, *shapes, *constants)
        return
    found = kernel[grid](*descriptors, *tensors, *lengths, *shapes, *constants, **options)
    if places % 16 == 0 and tensors[0].is_cuda:
        first = len(descriptors) + len(tensors)
        if not all(parameter.do_not_specialize for parameter in kernel.params[first : first + len(lengths)]):
            raise AssertionError(f"launch: {kernel} is compiled for its lengths")
        _compiled[key] = found, kernel  # which keeps its id

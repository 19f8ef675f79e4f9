"""How a call reaches us: on which device, and whether a compiler, a transform or a mode looks on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor, peek_interpreter_stack
from torch.autograd import forward_ad

F = TypeVar("F", bound=Callable[..., Any])


def on_device(x: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device: make it that of x."""
    if not x.is_cuda or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


def on_its_device(function: F) -> F:
    """The function, run on the device of its first argument."""

    @wraps(function)
    def run(x: Tensor, *rest: Any) -> Any:
        if not x.is_cuda or x.device.index == torch.cuda.current_device():
            return function(x, *rest)
        with torch.cuda.device(x.device):
            return function(x, *rest)

    return cast("F", run)


def distributed() -> bool:
    """Processes have joined, whose kernels may wait for one another.

    One that holds multiprocessors while it waits would keep a launch that needs all of them from beginning, and might
    itself wait for what comes after it.
    """
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def transformed() -> bool:
    """A transform of torch.func or forward-mode differentiation is under way, which operators of ours do not know."""
    if torch.compiler.is_compiling():  # which has interpreters of its own, and makes gradients from ours
        return forward_ad._current_level >= 0
    return peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def watched(x: Tensor) -> bool:
    """A compiler, a subclass, a transform or a mode looks on: then operators are called as such, else what they run.

    Their dispatch is felt where tokens are few, and the first imports torch's compiler, which takes seconds.
    """
    return (
        torch.compiler.is_compiling()
        or type(x) is not Tensor
        or is_legacy_batchedtensor(x)
        or torch._C._get_tracing_state() is not None
        or peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )

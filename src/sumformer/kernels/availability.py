"""Which kernels run here, and why not where they do not: one sentence, or None when nothing is in the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

SWITCH = "SUMFORMER_KERNELS"
F = TypeVar("F", bound=Callable[..., Any])


def obstacle() -> str | None:
    """What keeps the Triton kernels from running on this machine."""
    if os.environ.get(SWITCH, "1") == "0":
        return f"switched off by {SWITCH}=0"
    return _obstacle_of_the_machine()


@cache
def _obstacle_of_the_machine() -> str | None:
    if find_spec("triton") is None:
        return "triton is not installed"
    if not torch.cuda.is_available():
        return "no CUDA device"
    if torch.version.hip is not None:
        return "written for NVIDIA devices"
    if torch.cuda.get_device_capability()[0] < 9:
        return "the device has no tensor memory accelerator (compute capability 9.0 or later)"
    return None


# What torch.compiler.assume_constant_result does, without importing the compiler here.
obstacle._dynamo_marked_constant = True  # type: ignore[attr-defined]


def runs_on(x: Tensor) -> bool:
    """x lies where the Triton kernels can read it."""
    return x.is_cuda and obstacle() is None


def on_device(x: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device: make it that of x."""
    if not x.is_cuda or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


def on_its_device(function: F) -> F:
    """The function, run on the device of its first argument."""

    @wraps(function)
    def run(x: Tensor, *rest: Any) -> Any:
        with on_device(x):
            return function(x, *rest)

    return cast("F", run)


def transformed() -> bool:
    """A transform of torch.func or forward-mode differentiation is under way, which operators of ours do not know."""
    if torch.compiler.is_compiling():
        return False
    return peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def watched(x: Tensor) -> bool:
    """A compiler, a subclass, a transform or a mode looks on: then operators are called as such, else what they run.

    Their dispatch is felt where tokens are few, and the first imports torch's compiler, which takes seconds.
    """
    return (
        torch.compiler.is_compiling()
        or type(x) is not Tensor
        or torch._C._get_tracing_state() is not None
        or peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )

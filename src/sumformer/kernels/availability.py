"""Which kernels run here, and why not where they do not: one sentence, or None when nothing is in the way."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

SWITCH = "SUMFORMER_KERNELS"
MEMORY = 184 * 1024
"""Bytes of shared memory that the largest tile takes, and a little more."""


def obstacle() -> str | None:
    """What keeps the Triton kernels from running on this machine."""
    if _switched_off():
        return f"switched off by {SWITCH}=0"
    return _obstacle_of_the_machine()


_environment = os.environ
_names = getattr(os.environ, "_data", None) if os.name == "posix" else None
_NAME = os.fsencode(SWITCH)


def _switched_off() -> bool:
    """As the environment lies in memory: to ask `os.environ` takes a microsecond, and a call of a layer asks twice."""
    if type(_names) is dict and os.environ is _environment:
        return bool(_names.get(_NAME) == b"0")
    return os.environ.get(SWITCH) == "0"


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
    if getattr(torch.cuda.get_device_properties(), "shared_memory_per_block_optin", MEMORY) < MEMORY:
        return f"a program of the device has less than {MEMORY // 1024} KiB of shared memory"
    return None


# What torch.compiler.assume_constant_result does, without importing the compiler here.
obstacle._dynamo_marked_constant = True  # type: ignore[attr-defined]


def runs_on(x: Tensor) -> bool:
    """x lies where the Triton kernels can read it."""
    return x.is_cuda and obstacle() is None

"""Which launches share a compiled kernel: those that differ in lengths and addresses alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from sumformer.kernels import launch as module
from sumformer.kernels.launch import launch


@dataclass(frozen=True)
class Pointer:
    """What of a tensor a launch looks at."""

    place: int = 4096
    dtype: torch.dtype = torch.bfloat16
    device: str = "cuda:0"
    is_cuda: bool = True

    def data_ptr(self) -> int:
        return self.place


@dataclass(frozen=True)
class Parameter:
    do_not_specialize: bool


class Kernel:
    """Counts how often it is asked to find its compiled self."""

    def __init__(self, compiled_for_lengths: bool = False) -> None:
        self.found, self.ran = 0, []
        self.params = [Parameter(False), Parameter(False), Parameter(not compiled_for_lengths), Parameter(False)]

    def __getitem__(self, grid):
        def run(*arguments, **options):
            if len(grid) == 2:
                self.found += 1
            self.ran.append((grid[:2], arguments))
            return self

        return run


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(module, "_compiled", {})
    return Kernel()


def go(kernel, pointer=Pointer(), length=5, shape=16, constant=1, grid=(3, 1), warps=4):  # noqa: B008
    launch(kernel, grid, (pointer, pointer), (length,), (shape,), (constant,), num_warps=warps)


def test_lengths_places_and_grids_share_it(kernel):
    go(kernel)
    go(kernel, Pointer(place=32), 7, grid=(9, 2))
    assert kernel.found == 1
    assert [grid for grid, _ in kernel.ran] == [(3, 1), (9, 2)]
    assert kernel.ran[1][1] == (Pointer(32), Pointer(32), 7, 16, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"shape": 32},
        {"constant": 2},
        {"warps": 8},
        {"pointer": replace(Pointer(), dtype=torch.float16)},
        {"pointer": replace(Pointer(), device="cuda:1")},
        {"pointer": replace(Pointer(), place=4098)},
        {"pointer": replace(Pointer(), is_cuda=False, device="cpu")},
        {"length": 2**31},
    ],
)
def test_everything_else_does_not(kernel, other):
    go(kernel)
    go(kernel, **other)
    assert kernel.found == 2
    go(kernel)
    assert kernel.found == 2


def test_one_kernel_is_not_another(kernel):
    other = Kernel()
    go(kernel)
    go(other)
    assert (kernel.found, other.found) == (1, 1)


def test_what_was_compiled_for_pointers_off_16_bytes_is_not_remembered(kernel):
    go(kernel, Pointer(place=4098))
    go(kernel)
    assert kernel.found == 2


def test_the_dtypes_of_all_tensors_count(kernel):
    first, second = Pointer(), replace(Pointer(), dtype=torch.float32)
    launch(kernel, (1, 1), (first, first), (5,), (16,), (1,))
    launch(kernel, (1, 1), (first, second), (5,), (16,), (1,))
    assert kernel.found == 2


def test_descriptors_come_first_each_time(kernel):
    kernel.params.insert(0, Parameter(False))
    for _ in range(2):
        launch(kernel, (1, 1), (Pointer(), Pointer()), (5,), (16,), (1,), ("descriptor",))
    assert kernel.found == 1
    assert [arguments for _, arguments in kernel.ran] == [("descriptor", Pointer(), Pointer(), 5, 16, 1)] * 2


def test_a_kernel_that_is_compiled_for_its_lengths_is_refused(kernel):
    with pytest.raises(AssertionError, match="lengths"):
        go(Kernel(compiled_for_lengths=True))

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


class Kernel:
    """Counts how often it is asked to find its compiled self."""

    def __init__(self) -> None:
        self.found, self.ran = 0, []

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
    ],
)
def test_everything_else_does_not(kernel, other):
    go(kernel)
    go(kernel, **other)
    assert kernel.found == 2
    go(kernel)
    assert kernel.found == 2

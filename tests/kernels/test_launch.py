"""Which launches share a compiled kernel: those that differ in lengths and addresses alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import torch

from sumformer.kernels import launch as module
from sumformer.kernels.launch import launch

CUDA = torch.device("cuda", 0)


@dataclass(frozen=True)
class Pointer:
    """What of a tensor a launch looks at."""

    place: int = 4096
    dtype: torch.dtype = torch.bfloat16
    device: torch.device = CUDA
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
        def find(*arguments, **options):
            self.found += 1
            self.ran.append((grid, arguments))
            return Compiled(self)

        return find


class Compiled:
    """What Triton hands out, and what is called of it."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def run(self, x, y, z, *rest):
        assert z == 1
        assert rest[:6] == ("stream of 0", "function", "metadata", None, None, None)
        self.kernel.ran.append(((x, y), rest[6:]))


class Chain:
    def __init__(self, *calls) -> None:
        self.calls = list(calls)


@dataclass
class Runtime:
    launch_enter_hook: object = None
    launch_exit_hook: object = field(default_factory=Chain)


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(module, "_compiled", {})
    monkeypatch.setattr(module, "current_stream", lambda device: f"stream of {device.index}")
    monkeypatch.setattr(module, "_version", lambda: "3.6")
    runtime = Runtime()
    monkeypatch.setattr(module, "_runtime", lambda: runtime)
    return Kernel()


def go(kernel, pointer=Pointer(), length=5, shape=16, constant=1, grid=(3, 1), warps=4):  # noqa: B008
    launch(kernel, grid, (pointer, pointer), (length,), (shape,), (constant,), num_warps=warps)


def test_lengths_places_and_grids_share_it(kernel):
    go(kernel)
    go(kernel, Pointer(place=32), 7, grid=(9, 2))
    assert kernel.found == 1
    assert [grid for grid, _ in kernel.ran] == [(3, 1), (9, 2)]
    assert kernel.ran[1][1] == (32, 32, 7, 16, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"shape": 32},
        {"constant": 2},
        {"warps": 8},
        {"pointer": replace(Pointer(), dtype=torch.float16)},
        {"pointer": replace(Pointer(), device=torch.device("cuda", 1))},
        {"pointer": replace(Pointer(), place=4098)},
        {"pointer": replace(Pointer(), is_cuda=False, device=torch.device("cpu"))},
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


def described(kernel, *dtypes):
    """Launches with two descriptors, the second of a tensor of each dtype; what stood in the first's place."""
    kernel.params[:0] = [Parameter(False)] * 2
    first = torch.zeros(4, 8, dtype=torch.bfloat16)
    for dtype in dtypes:
        pair = ((first, [2, 8]), (first.to(dtype), [2, 8]))
        launch(kernel, (1, 1), (Pointer(), Pointer()), (5,), (16,), (1,), pair)
    return [arguments[0] for _, arguments in kernel.ran]


def test_descriptors_come_first_each_time(kernel, monkeypatch):
    monkeypatch.setattr(module, "_descriptor", lambda tensor, block: (tuple(tensor.shape), block))
    first, second = described(kernel, torch.bfloat16, torch.bfloat16)
    assert kernel.found == 1
    assert first == ((4, 8), [2, 8])
    assert (tuple(second.shape), second.strides, second.padding) == ((4, 8), (8, 1), "zero")
    assert second.base.shape == (4, 8)
    assert kernel.ran[1][1][2:] == (4096, 4096, 5, 16, 1)


def test_their_dtype_counts_too(kernel, monkeypatch):
    monkeypatch.setattr(module, "_descriptor", lambda *_: None)
    described(kernel, torch.bfloat16, torch.float16)
    assert kernel.found == 2


def test_what_comes_first_comes_once(kernel):
    came = []
    for _ in range(2):
        launch(kernel, (1, 1), (Pointer(),) * 2, (5,), (16,), (1,), first=lambda: came.append(kernel.found))
    assert came == [0]


@pytest.mark.parametrize("hook", ["launch_enter_hook", "launch_exit_hook"])
@pytest.mark.parametrize("looks", [print, Chain(print)])
def test_what_looks_on_sees_every_launch(kernel, hook, looks):
    go(kernel)
    setattr(module._runtime(), hook, looks)
    go(kernel)
    assert kernel.found == 2
    setattr(module._runtime(), hook, Chain())
    go(kernel)
    assert kernel.found == 2


def test_a_triton_that_may_be_called_otherwise_looks_up_itself(kernel, monkeypatch):
    monkeypatch.setattr(module, "_version", lambda: "4.0")
    go(kernel)
    go(kernel)
    assert kernel.found == 2


def test_the_hooks_of_triton_are_empty_chains_or_none(interpreted):
    assert not module._calls(module._runtime().launch_enter_hook)
    assert not module._calls(module._runtime().launch_exit_hook)


def test_a_kernel_that_is_compiled_for_its_lengths_is_refused(kernel):
    with pytest.raises(AssertionError, match="lengths"):
        go(Kernel(compiled_for_lengths=True))

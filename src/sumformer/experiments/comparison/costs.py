"""n ↦ seconds of a step and of a prediction, and bytes a prediction allocates at its peak, by architecture."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sumformer.learn.architectures import Shape, Size, build

BATCH = 8
SLOW = 1.0


def costs(name: str, shape: Shape, size: Size, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """One row for each n, sets of n tokens in batches of 8, one thread; after a second a step, no longer ones."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _costs(name, shape, size, lengths)
    finally:
        torch.set_num_threads(threads)


def _costs(name: str, shape: Shape, size: Size, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in lengths:
        module = build(name, replace(shape, n_max=n, n_mean=float(n)), size)
        x = torch.randn(BATCH, n, shape.d, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            predict = _best(lambda module=module, x=x: module(x))  # type: ignore[misc]
            peak = peak_bytes(module, x)
        step = _best(lambda module=module, x=x: _step(module, x))  # type: ignore[misc]
        rows.append({"n": n, "predict_seconds": predict / BATCH, "step_seconds": step / BATCH, "peak_bytes": peak})
        if step > SLOW:
            break
    return rows


def _step(module: nn.Module, x: Tensor) -> None:
    module.zero_grad()
    out: Tensor = module(x)
    torch.autograd.backward(out.square().mean())


def _best(call: Callable[[], Any]) -> float:
    """The least of up to five times after a first: what else the machine does only adds."""
    times: list[float] = []
    for repeat in range(6):
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        if repeat or elapsed > SLOW:
            times.append(elapsed)
        if sum(times) > SLOW:
            break
    return min(times)


def peak_bytes(module: nn.Module, x: Tensor) -> int:
    """The most bytes of tensors alive at once beyond the weights, after each operation."""
    alive = _Alive()
    with alive:
        module(x)
    return alive.peak


class _Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches the storages of all results; what a fused kernel uses inside it is not seen."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._tensors: dict[int, tuple[int, list[weakref.ref[Tensor]]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                _, known = self._tensors.setdefault(storage.data_ptr(), (storage.nbytes(), []))
                known.append(weakref.ref(tensor))
        self._tensors = {k: (s, live) for k, (s, refs) in self._tensors.items() if (live := _living(refs))}
        self.peak = max(self.peak, sum(size for size, _ in self._tensors.values()))
        return out


def _living(refs: list[weakref.ref[Tensor]]) -> list[weakref.ref[Tensor]]:
    return [ref for ref in refs if ref() is not None]

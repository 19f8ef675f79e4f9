"""Power sums in plain torch: chunks change nothing, and little is held at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from sumformer.kernels import power_sums_chunks
from sumformer.nn.power_sums import power_sums


def tokens(batch: int, n: int, d: int) -> Tensor:
    return torch.rand(batch, n, d, generator=torch.Generator().manual_seed(0))


def test_chunks_and_groups_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tokens(70, 9, 2).double()
    keep = x[..., 0] > 0.2
    wanted = power_sums(x, 5, "chebyshev", keep=keep)
    monkeypatch.setattr(power_sums_chunks, "HELD", 1000)
    assert (power_sums(x, 5, "chebyshev", keep=keep) - wanted).abs().max() <= 1e-13


def test_many_sequences_of_many_features_are_taken_a_few_at_a_time() -> None:
    """Two factors have more products than there are features, which are not held for all sequences."""
    held = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = function(*args, **(kwargs or {}))
            held.append(out.numel() if isinstance(out, torch.Tensor) else 0)
            return out

    x = tokens(64, 5, 4)
    with Watch():
        got = power_sums_chunks.by_chunks(x, None, 20, True, 0.5, 2.0)
    assert max(held) <= power_sums_chunks.HELD
    wanted = power_sums_chunks.by_chunks(x[40:41], None, 20, True, 0.5, 2.0)
    assert torch.allclose(got[40:41], wanted, rtol=1e-12, atol=1e-12)

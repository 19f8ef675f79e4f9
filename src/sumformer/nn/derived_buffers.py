"""Constants that follow from a module's configuration: buffers that are not saved and never lose their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor, nn


class DerivedBuffers(nn.Module):
    """A mixin. What has no memory for them (the meta device, `to_empty`) leaves them what and where they were.

    So a module built on the meta device holds them on the CPU, and they follow the tokens from there.
    """

    def _derive(self, name: str, values: Sequence[float | Sequence[float]], dtype: torch.dtype) -> None:
        device = torch.get_default_device()
        made = torch.tensor(values, dtype=dtype, device="cpu" if device.type == "meta" else device)
        self.register_buffer(name, made, persistent=False)

    def _derived(self, name: str, like: Tensor) -> Tensor:
        """The buffer, where `like` is."""
        value: Tensor = getattr(self, name)
        return value if value.device == like.device else value.to(like.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Behind `to`, `double`, `to_empty`, …: takes the device and the dtype of what `fn` gives, not its values."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name in self._non_persistent_buffers_set:
            value, after = before[name], self._buffers[name]
            if value is not None and after is not None:
                self._buffers[name] = value if after.is_meta else value.to(after)
        return self

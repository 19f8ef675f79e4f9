"""What Sumformer and SumMixer share: `net.apply(x, state)` evaluates queries against a summary of sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from sumformer.errors import DtypeError
from sumformer.nn.inputs import check_tokens
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.summary import Summary


class SummarisingModule(PretrainedModule, ABC):
    """y_i = ψ(x_i, state), for any state made by `summarise`, `+` and `-`."""

    @abstractmethod
    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) without input checks."""

    def apply(self, x: Any, state: Summary | None = None) -> Any:
        """`apply(x, state)`: ψ(x_i, Σ). `apply(function)` stays torch's walk over sub-modules."""
        if state is None:
            if not callable(x) or isinstance(x, Tensor):
                raise DtypeError(f"{type(self).__name__}.apply", "queries x and a Summary", type(state).__name__)
            return super().apply(x)
        return self.psi_of(check_tokens(f"{type(self).__name__}.apply", x), state)

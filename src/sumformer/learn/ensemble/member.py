"""One model of an ensemble: its widths, its data, its learning rate, and the seed of its weights and data order."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from sumformer.errors import InputError
from sumformer.nn.layer import check_positive


@dataclass(frozen=True)
class Member:
    """A Sumformer ℝ^{n×d} → ℝ^{n×d_out} with d' = `d_latent`, trained on data set number `data`."""

    d: int
    d_latent: int
    d_out: int
    seed: int = 0
    data: int = 0
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("Member", d=self.d, d_latent=self.d_latent, d_out=self.d_out)
        if not 0 < self.learning_rate < inf:
            raise InputError(f"Member: expected a learning rate > 0, got {self.learning_rate}")

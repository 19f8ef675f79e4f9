"""x ↦ (x − μ_x)/σ_x and y ↦ (y − μ_y)/σ_y for each coordinate, fitted on real tokens, saved, undone in predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.learn.sets import Sets


@dataclass(frozen=True)
class Affine:
    """v ↦ (v − shift)/scale, coordinate by coordinate; scale 0 stands for v ↦ 0."""

    shift: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, values: Tensor, constant: float = 1.0) -> Affine:
        """Mean 0 and deviation 1 over the rows of `values` (m, k); one that never changes has the scale given."""
        if not len(values):
            raise InputError("standardisation: there is no token to fit on")
        exponent = torch.frexp(values.double().abs().amax(0)).exponent.double()
        unit = 2.0**exponent  # so that no square overflows, and nothing is rounded
        small = values.double() / unit
        mean, deviation = small.mean(0), small.std(0, correction=0)
        still = deviation <= 1e-12 * mean.abs()
        shift, scale = mean * unit, deviation * unit
        if not bool((torch.isfinite(shift) & torch.isfinite(scale) & (still | (scale > 0))).all()):
            raise InputError("standardisation: numbers near the end of float64's range; scale them first")
        return cls(tuple(shift.tolist()), tuple(torch.where(still, constant, scale).tolist()))

    @classmethod
    def identity(cls, k: int) -> Affine:
        return cls((0.0,) * k, (1.0,) * k)

    def apply(self, values: Tensor) -> Tensor:
        scale = values.new_tensor(self.scale)
        return torch.where(scale == 0, 0.0, (values - values.new_tensor(self.shift)) / scale)

    def undo(self, values: Tensor) -> Tensor:
        return values * values.new_tensor(self.scale) + values.new_tensor(self.shift)


@dataclass(frozen=True)
class Standardisation:
    """`x` goes before the network. `y` is what the loss sees; with `raw`, the network itself speaks in units of y."""

    x: Affine
    y: Affine
    raw: bool = False

    @classmethod
    def fit(cls, sets: Sets, raw: bool = False) -> Standardisation:
        """On the sets given, which should be those trained on. `raw` leaves x as it is, for a constructed network.

        Nothing can be learned of a coordinate of x that never changes: the network does not see it.
        """
        if sets.y is None or sets.task is None:
            raise InputError("standardisation: expected sets with targets")
        x = Affine.identity(sets.d) if raw else Affine.fit(sets.x[sets.keep], constant=0.0)
        if sets.task.classes is not None:
            return cls(x, Affine.identity(sets.task.d_out), raw)
        return cls(x, Affine.fit(sets.y[sets.keep] if sets.task.per_token else sets.y), raw)

    @property
    def unseen(self) -> list[int]:
        """The coordinates of x that never changed."""
        return [c for c, scale in enumerate(self.x.scale) if scale == 0]

    def inputs(self, sets: Sets, dtype: torch.dtype) -> Tensor:
        """What the network sees; padding 0."""
        return torch.where(sets.keep.unsqueeze(-1), self.x.apply(sets.x), 0.0).to(dtype)

    def outputs(self, out: Tensor) -> Tensor:
        """The network's output in standardised units."""
        return self.y.apply(out) if self.raw else out

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Standardisation:
        x, y = (Affine(tuple(data[k]["shift"]), tuple(data[k]["scale"])) for k in ("x", "y"))
        return cls(x, y, bool(data["raw"]))

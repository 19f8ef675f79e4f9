"""A gadget as a module of its own: z ↦ z + FC(z), layer by layer, on its arguments, its output and its workspace."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sumformer.gadgets.units import Gadget


class ResidualGadget(nn.Module):
    """(…, arguments) → (…,): the gadget's value in `out`, by ReLU layers alone."""

    def __init__(self, gadget: Gadget, arguments: Sequence[str], out: str) -> None:
        super().__init__()
        places = [*arguments, out, *gadget.workspace]
        self.arguments, self.out, self.width = len(arguments), places.index(out), len(places)
        self.layers = nn.ModuleList()
        for stage in gadget.stages:
            hidden = sum(units.count for units in stage)
            first, second = (
                nn.Linear(*shape, dtype=torch.float64) for shape in ((len(places), hidden), (hidden, len(places)))
            )
            with torch.no_grad():
                for parameter in (*first.parameters(), *second.parameters()):
                    parameter.zero_()
                start = 0
                for units in stage:
                    rows = slice(start, start + units.count)
                    for name, weight in units.reads.items():
                        first.weight[rows, places.index(name)] = weight
                    first.bias[rows] = torch.from_numpy(units.offset - units.knots)
                    for name, bends in units.writes.items():
                        second.weight[places.index(name), rows] = torch.from_numpy(bends.copy())
                    for name, constant in units.constants.items():
                        second.bias[places.index(name)] += constant
                    start += units.count
            self.layers.append(nn.Sequential(first, nn.ReLU(), second))

    def forward(self, x: Tensor) -> Tensor:
        z = torch.cat([x, x.new_zeros(*x.shape[:-1], self.width - self.arguments)], dim=-1)
        for layer in self.layers:
            z = z + layer(z)
        return z[..., self.out]

"""MLP(x) = W_L σ(W_{L−1} … σ(W_0 x + b_0) …) + b_L, token-wise."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.inputs import check_width, with_dtypes_named
from sumformer.nn.layer import check_positive
from sumformer.nn.pretrained import PretrainedModule

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


def activation_module(name: str) -> nn.Module:
    """The activation called `name`."""
    if name not in ACTIVATIONS:
        raise InputError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]()


class MLP(PretrainedModule):
    """`depth` hidden layers of `hidden` units; the papers use five of 50 with ReLU."""

    def __init__(self, d_in: int, d_out: int, hidden: int = 50, depth: int = 5, activation: str = "relu") -> None:
        super().__init__()
        check_positive("MLP", d_in=d_in, d_out=d_out, hidden=hidden)
        if depth < 0:
            raise InputError(f"MLP: expected depth ≥ 0, got depth = {depth}")
        self.d_in, self.d_out, self.hidden, self.depth, self.activation = d_in, d_out, hidden, depth, activation
        widths = [d_in] + [hidden] * depth
        hidden_layers = [
            layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), activation_module(activation))
        ]
        self.layers = nn.Sequential(*hidden_layers, nn.Linear(widths[-1], d_out))

    @with_dtypes_named
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(check_width("MLP", x, self.d_in))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{self.d_in} → ℝ^{self.d_out}"

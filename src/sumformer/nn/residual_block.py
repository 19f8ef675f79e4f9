"""Y (1)–(2): Z = X + Att(X),   ResidualBlock(X) = Z + FF(Z).

With pre-norm N and dropout D:   Z = X + D Att(N_1 X),   ResidualBlock(X) = Z + D FF(N_2 Z).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from sumformer.nn.sub_layers import SubLayers


class ResidualBlock(SubLayers):
    """Z = X + Att(X); Z + FF(Z), the arguments those of `SubLayers`: bare unless norms or dropout are given."""

    def compose(self, x: Tensor, att: Callable[[Tensor], Tensor]) -> Tensor:
        z = x + att(x)
        return z + self.fc(z)

    def extra_repr(self) -> str:
        return "X ↦ Z + FF(Z), Z = X + Att(X)"

"""A 2.3: Block(X) = X + FC(X + Att(X)).

With pre-norm N and dropout D:   Block(X) = X + D FC(N_2(X + D Att(N_1 X))).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from sumformer.nn.sub_layers import SubLayers


class Block(SubLayers):
    """X + FC(X + Att(X)), the arguments those of `SubLayers`: bare unless norms or dropout are given."""

    def compose(self, x: Tensor, att: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.fc(x + att(x))

    def extra_repr(self) -> str:
        return "X ↦ X + FC(X + Att(X))"

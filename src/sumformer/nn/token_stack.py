"""A stack of token-wise residual layers, their weights side by side:   z ↦ z + F_l(z)  for l = 1 … L.

ReluStack     F_l(z) = W₂ relu(W₁ z + b₁)        r hidden units
PieceStack    F_l(z) = w₂ φ(w₁ᵀz)                r = 1, φ of three pieces

`block(l)` is the l-th layer as a `ResidualBlock`. `fused` is for look-up layers: all layers read the same form wᵀz and
act only on intervals of it, from the highest to the lowest, so that each token meets the few layers that change it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.layer import TokenWise, check_positive
from sumformer.nn.residual_block import ResidualBlock
from sumformer.nn.three_pieces import ThreePieces, three_pieces
from sumformer.nn.zero import Zero


class TokenStack(TokenWise, ABC):
    """`layers` layers on width `d_model`."""

    def __init__(self, d_model: int, layers: int, fused: bool = False) -> None:
        super().__init__()
        check_positive("TokenStack", d_model=d_model)
        self.d_model, self.layers, self.fused = d_model, layers, fused
        self.width = d_model

    def __len__(self) -> int:
        return self.layers

    @abstractmethod
    def stacked(self) -> tuple[Tensor, ...]:
        """The weights, layer by layer along the first dimension of each."""

    @abstractmethod
    def layer(self, z: Tensor, *weights: Tensor) -> Tensor:
        """F(z) for the weights of one layer."""

    @abstractmethod
    def step(self, z: Tensor, l: Tensor) -> Tensor:  # noqa: E741
        """F_l(z), with an l for each token z (m, d_model)."""

    @abstractmethod
    def block(self, l: int) -> ResidualBlock:  # noqa: E741
        """The l-th layer."""

    @abstractmethod
    def is_look_up(self) -> bool:
        """Do all layers read one form, and each act only on an interval of it, lower for every next layer?"""

    @abstractmethod
    def form(self) -> Tensor:
        """w of a look-up."""

    @abstractmethod
    def supports(self) -> tuple[Tensor, Tensor]:
        """Where wᵀz must lie for each layer of a look-up to act: [start, end)."""

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if torch.compiler.is_exporting() and self.layers:
            return self._scan(x)
        if self.fused and self.layers:
            return self._look_up(x.reshape(-1, self.d_model)).reshape(x.shape)
        for weights in zip(*self.stacked(), strict=True):
            x = x + self.layer(x, *weights)
        return x

    def _scan(self, x: Tensor) -> Tensor:
        """One layer after the other as a loop of the graph, which is then as long for one layer as for thousands."""
        from torch._higher_order_ops.scan import scan  # a prototype in torch, of use to exporters alone

        def body(z: Tensor, weights: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            return z + self.layer(z, *weights), z.new_zeros(1)  # nothing is collected along the way

        out, _ = scan(body, x, self.stacked())
        return out  # type: ignore[no-any-return]

    def _look_up(self, z: Tensor) -> Tensor:
        """A layer acts on a token when its interval contains wᵀz: then the next one of a later layer is sought."""
        w, (start, end) = self.form(), self.supports()
        start, end, highest = start.flip(0), end.flip(0), self.layers - 1
        last = torch.full((len(z),), -1, device=z.device)
        live = torch.arange(len(z), device=z.device)
        while len(live):
            t = z[live] @ w
            place = torch.searchsorted(start, t, right=True) - 1
            hit = (place >= 0) & (highest - place > last[live]) & (t < end[place.clamp(min=0)])
            live, l = live[hit], highest - place[hit]  # noqa: E741
            z = z.index_add(0, live, self.step(z[live], l))
            last[live] = l
        return z

    def extra_repr(self) -> str:
        return f"ℝ^{self.d_model} → ℝ^{self.d_model}, {self.layers} layers" + (", fused" if self.fused else "")


class ReluStack(TokenStack):
    """r = `d_hidden` hidden units in each layer."""

    def __init__(self, d_model: int, d_hidden: int, layers: int, fused: bool = False) -> None:
        super().__init__(d_model, layers, fused)
        check_positive("ReluStack", d_hidden=d_hidden)
        self.d_hidden = d_hidden
        self.W_1 = nn.Parameter(torch.randn(layers, d_hidden, d_model) / d_model**0.5)
        self.b_1 = nn.Parameter(torch.randn(layers, d_hidden))
        self.W_2 = nn.Parameter(torch.randn(layers, d_model, d_hidden) / d_hidden**0.5)

    def stacked(self) -> tuple[Tensor, ...]:
        return self.W_1, self.b_1, self.W_2

    def layer(self, z: Tensor, *weights: Tensor) -> Tensor:
        W_1, b_1, W_2 = weights
        return (z @ W_1.T + b_1).relu() @ W_2.T

    def step(self, z: Tensor, l: Tensor) -> Tensor:  # noqa: E741
        hidden = (torch.einsum("mrd,md->mr", self.W_1[l], z) + self.b_1[l]).relu()
        return torch.einsum("mdr,mr->md", self.W_2[l], hidden)

    def block(self, l: int) -> ResidualBlock:  # noqa: E741
        layer = FeedForward(self.d_model, self.d_hidden).to(self.W_1)
        with torch.no_grad():
            layer.W_1.weight.copy_(self.W_1[l])
            layer.W_1.bias.copy_(self.b_1[l])
            layer.W_2.weight.copy_(self.W_2[l])
            layer.W_2.bias.zero_()
        return ResidualBlock(Zero(), layer)

    def form(self) -> Tensor:
        return self.W_1[0, 0]

    def is_look_up(self) -> bool:
        same = bool((self.form() == self.W_1).all()) if self.layers else False
        gone = self.d_hidden == 4 and _trapezoids(self.W_2, self.b_1)
        return same and gone and _follow(*self.supports())

    def supports(self) -> tuple[Tensor, Tensor]:
        """From the first kink to the last."""
        return -self.b_1.amax(-1), -self.b_1.amin(-1)


class PieceStack(TokenStack):
    """One hidden unit with three pieces in each layer; a look-up is 0 outside its middle piece."""

    def __init__(self, d_model: int, layers: int, fused: bool = False) -> None:
        super().__init__(d_model, layers, fused)
        self.w_1 = nn.Parameter(torch.randn(layers, d_model) / d_model**0.5)
        self.w_2 = nn.Parameter(torch.randn(layers, d_model))
        self.c = nn.Parameter(torch.tensor([-1.0, 1.0]).repeat(layers, 1))
        self.a = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]).repeat(layers, 1))
        self.b = nn.Parameter(torch.zeros(layers, 3))

    def stacked(self) -> tuple[Tensor, ...]:
        return self.w_1, self.c, self.a, self.b, self.w_2

    def layer(self, z: Tensor, *weights: Tensor) -> Tensor:
        w_1, c, a, b, w_2 = weights
        return three_pieces(z @ w_1, c, a, b).unsqueeze(-1) * w_2

    def step(self, z: Tensor, l: Tensor) -> Tensor:  # noqa: E741
        t = (z * self.w_1[l]).sum(-1)
        return three_pieces(t, self.c[l], self.a[l], self.b[l]).unsqueeze(-1) * self.w_2[l]

    def block(self, l: int) -> ResidualBlock:  # noqa: E741
        layer = ThreePieces(self.d_model).to(self.w_1)
        with torch.no_grad():
            for name in ("w_1", "w_2", "c", "a", "b"):
                getattr(layer, name).copy_(getattr(self, name)[l])
        return ResidualBlock(Zero(), layer)

    def form(self) -> Tensor:
        return self.w_1[0]

    def is_look_up(self) -> bool:
        same = bool((self.w_1 == self.form()).all()) if self.layers else False
        ends = torch.cat([self.a[:, ::2], self.b[:, ::2]])
        return same and bool((ends == 0).all()) and _follow(*self.supports())

    def supports(self) -> tuple[Tensor, Tensor]:
        return self.c[:, 0].contiguous(), self.c[:, 1].contiguous()


def _trapezoids(w: Tensor, b: Tensor) -> bool:
    """w (+, −, −, +) at four kinks, the outer pairs equally far apart: 0 to the right of the last one, exactly."""
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=w.dtype, device=w.device)
    return bool((w == w[..., :1] * signs).all() and (b[:, 0] - b[:, 1] == b[:, 2] - b[:, 3]).all())


def _follow(start: Tensor, end: Tensor) -> bool:
    return bool((start < end).all() and (end[1:] <= start[:-1]).all())

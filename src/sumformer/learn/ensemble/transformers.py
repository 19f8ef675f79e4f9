"""M small Transformers as one, each with its own attention patterns:  Z = X + Att_m(N_1 X),  X ← Z + FF_m(N_2 Z).

The patterns are boolean masks per member, layer and head; weights are batched, so one step trains all members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from sumformer.errors import InputError, ShapeError
from sumformer.learn.ensemble.flat_parameters import Layer, LayerShape, count, layers


class TransformerEnsemble(nn.Module):
    """Symbols (batch, n), the same for all members, → logits (M, batch, n, symbols).

    `masks`: (M, depth, heads, n, n), true where token k may attend to token j. Positions are learned, started at
    sines and cosines. Member m is drawn from seed m.
    """

    masks: Tensor

    def __init__(self, masks: Tensor, symbols: int, d_model: int = 128, feed_forward: int = 256) -> None:
        super().__init__()
        if masks.dim() != 5 or masks.shape[3] != masks.shape[4] or masks.dtype != torch.bool:
            raise InputError("TransformerEnsemble: expected boolean masks of shape (M, depth, heads, n, n)")
        self.M, self.depth, self.heads, self.n = masks.shape[:4]
        if d_model % self.heads:
            raise InputError(f"TransformerEnsemble: expected {self.heads} heads to divide d_model, got {d_model}")
        self.symbols, self.d_model, self.feed_forward = symbols, d_model, feed_forward
        self.register_buffer("masks", masks, persistent=False)
        D, F = d_model, feed_forward
        block = [LayerShape(1, D), LayerShape(D, 3 * D), LayerShape(D, D), LayerShape(1, D)]
        block += [LayerShape(D, F), LayerShape(F, D)]
        ends = [LayerShape(1, D), LayerShape(D, symbols)]
        self._shapes = [LayerShape(symbols, D, False), LayerShape(self.n, D, False), *block * self.depth, *ends]
        self.flat = nn.Parameter(torch.zeros(self.M, count(self._shapes)))
        for seed, row in enumerate(self.flat.detach()):
            self._draw(layers(row[None], self._shapes), torch.Generator().manual_seed(seed))

    def forward(self, symbols: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """`dtype`: of the matrix products, bfloat16 say; by default that of the weights."""
        if symbols.dim() != 2 or symbols.shape[1] != self.n:
            raise ShapeError("TransformerEnsemble", f"symbols (batch, {self.n})", symbols.shape)
        flat = self.flat if dtype is None else self.flat.to(dtype)
        parts = iter(layers(flat, self._shapes))
        table, positions = next(parts), next(parts)
        # a product with one-hot rows: the gradient of a look-up adds the copies of a frequent symbol one by one
        one_hot = functional.one_hot(symbols.flatten(), self.symbols).to(flat.dtype).expand(self.M, -1, -1)
        x = table(one_hot).view(self.M, *symbols.shape, -1) + positions.weight.unsqueeze(1)  # (M, B, n, D)
        for layer in range(self.depth):
            x = self._block(x, parts, layer)
        return self._tokenwise(next(parts, None), next(parts), x)

    def _block(self, x: Tensor, parts: Iterator[Layer], layer: int) -> Tensor:
        M, B, n, D = x.shape
        heads = self._tokenwise(next(parts), next(parts), x)  # (M, B, n, 3 D)
        q, k, v = heads.view(M * B, n, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        bias = torch.zeros(self.masks[:, layer].shape, dtype=x.dtype, device=x.device)
        bias = bias.masked_fill(~self.masks[:, layer], -math.inf)  # (M, heads, n, n)
        bias = bias.unsqueeze(1).expand(M, B, -1, n, n).reshape(M * B, self.heads, n, n)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        z = x + self._tokenwise(None, next(parts), mixed.transpose(1, 2).reshape(M, B, n, D))
        hidden = functional.gelu(self._tokenwise(next(parts), next(parts), z))
        return z + self._tokenwise(None, next(parts), hidden)

    def _tokenwise(self, norm: Layer | None, layer: Layer, x: Tensor) -> Tensor:
        M, B, n, D = x.shape
        if norm is not None:
            assert norm.bias is not None
            x = functional.layer_norm(x, (D,)) * norm.weight.unsqueeze(1) + norm.bias.unsqueeze(1)
        return layer(x.reshape(M, B * n, D)).view(M, B, n, -1)

    def _draw(self, parts: list[Layer], generator: torch.Generator) -> None:
        """Embeddings of deviation 0.5, uniform linear layers as torch's, unit norms."""
        table, positions, *rest = parts
        table.weight.normal_(0.0, 0.5, generator=generator)
        positions.weight.copy_(_waves(self.n, self.d_model))
        for part in rest:
            d_in = part.weight.shape[1]
            if d_in == 1:
                part.weight.fill_(1.0)
            else:
                part.weight.uniform_(-(d_in**-0.5), d_in**-0.5, generator=generator)


def _waves(n: int, D: int) -> Tensor:
    """Sines and cosines of wavelengths from 2π to 10⁴·2π."""
    angles = torch.arange(n)[:, None] * 10_000 ** (-torch.arange(0, D, 2) / D)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :D]

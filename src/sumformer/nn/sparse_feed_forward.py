"""FC(x) = W_2 R(W_1 x + b_1) + b_2 with W_1, W_2 stored by their non-zero entries: most weights are 0.

Evaluated as sparse products over slabs of tokens, so that no buffer exceeds `SLAB` numbers; cost O(n · non-zeros).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.layer import TokenWise, check_positive

SLAB = 2**22


class SparseFeedForward(TokenWise):
    """`nonzero_1`, `nonzero_2` entries of W_1 (d_hidden × d_model) and W_2 (d_model × d_hidden), rows ascending.

    `place_i` (2, non-zeros) holds rows and columns, `value_i` the weights; b_1 and b_2 are whole.
    """

    def __init__(self, d_model: int, d_hidden: int, nonzero_1: int, nonzero_2: int) -> None:
        super().__init__()
        check_positive("SparseFeedForward", d_model=d_model, d_hidden=d_hidden)
        self.d_model, self.d_hidden, self.nonzero_1, self.nonzero_2 = d_model, d_hidden, nonzero_1, nonzero_2
        self.width = d_model
        self.place_1: Tensor
        self.place_2: Tensor
        for i, count in ((1, nonzero_1), (2, nonzero_2)):
            self.register_buffer(f"place_{i}", torch.zeros(2, count, dtype=torch.int32))
        self.value_1, self.value_2 = (nn.Parameter(torch.zeros(count)) for count in (nonzero_1, nonzero_2))
        self.b_1, self.b_2 = nn.Parameter(torch.zeros(d_hidden)), nn.Parameter(torch.zeros(d_model))

    def matrix(self, i: int) -> Tensor:
        """W_1 or W_2 as a sparse tensor through which gradients reach the stored values."""
        place, value = (self.place_1, self.value_1) if i == 1 else (self.place_2, self.value_2)
        shape = (self.d_hidden, self.d_model) if i == 1 else (self.d_model, self.d_hidden)
        return torch.sparse_coo_tensor(place.long(), value, shape, is_coalesced=True, check_invariants=False)

    def whole(self, i: int) -> Tensor:
        """W_1 or W_2 with its zeros."""
        place, value = (self.place_1, self.value_1) if i == 1 else (self.place_2, self.value_2)
        shape = (self.d_hidden, self.d_model) if i == 1 else (self.d_model, self.d_hidden)
        return value.new_zeros(shape).index_put((place[0].long(), place[1].long()), value)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if torch.compiler.is_compiling():  # sparse tensors have no form in an exported graph
            out: Tensor = self.activation(x @ self.whole(1).mT + self.b_1) @ self.whole(2).mT + self.b_2
            return out
        first, second = self.matrix(1), self.matrix(2)
        columns = x.flatten(0, 1).mT  # (d_model, tokens)
        slabs = torch.split(columns, max(1, SLAB // self.d_hidden), dim=1)
        hidden = (self.activation(torch.sparse.mm(first, z) + self.b_1[:, None]) for z in slabs)
        parts = [torch.sparse.mm(second, h) for h in hidden]
        return torch.unflatten((torch.cat(parts, dim=1) + self.b_2[:, None]).mT, 0, x.shape[:2])

    def activation(self, z: Tensor) -> Tensor:
        """R."""
        return z.relu()

    def dense(self) -> FeedForward:
        """The same map with every weight stored."""
        out = FeedForward(self.d_model, self.d_hidden).to(self.value_1.dtype)
        with torch.no_grad():
            for layer, i, bias in ((out.W_1, 1, self.b_1), (out.W_2, 2, self.b_2)):
                layer.weight.copy_(self.whole(i))
                layer.bias.copy_(bias)
        return out

    def extra_repr(self) -> str:
        count = self.nonzero_1 + self.nonzero_2
        return f"ℝ^{self.d_model} → ℝ^{self.d_model}, {self.d_hidden} hidden, {count} non-zero weights"

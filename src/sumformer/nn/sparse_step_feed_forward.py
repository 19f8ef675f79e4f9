"""FC(x) = W_2 H(W_1 x + b_1) + b_2,   H(t) = 1 where t ≥ 0, else 0: the token-wise layer of a discontinuous network."""

from __future__ import annotations

from torch import Tensor

from sumformer.errors import NotSupportedError
from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.sparse_feed_forward import SparseFeedForward


class SparseStepFeedForward(SparseFeedForward):
    """As `SparseFeedForward`, with steps for ReLU; piecewise constant, so its gradient is 0."""

    def activation(self, z: Tensor) -> Tensor:
        return (z >= 0).to(z.dtype)

    def dense(self) -> FeedForward:
        raise NotSupportedError("SparseStepFeedForward: a FeedForward has ReLU, this layer has steps")

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, step activation"

"""AverageAttention(X) = (11ᵀ/n) X W_V W_O: the softmax matrix replaced by the uniform one."""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.kernels.layout import accumulation_dtype
from sumformer.nn.inputs import check_piece
from sumformer.nn.layer import Layer, check_positive
from sumformer.nn.segments import Segments
from sumformer.nn.summary import Summary, prefix_summaries, segment_summaries


class AverageAttention(Layer):
    """Every token receives the mean of the real tokens, mapped through `d_head` values. Cost O(n)."""

    def __init__(self, d_model: int, d_head: int | None = None) -> None:
        super().__init__()
        self.d_model, self.d_head = d_model, d_model if d_head is None else d_head
        check_positive("AverageAttention", d_model=d_model, d_head=self.d_head)
        self.width = d_model
        self.W_V = nn.Linear(d_model, self.d_head, bias=False)
        self.W_O = nn.Linear(self.d_head, d_model, bias=False)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return self._map(mean_of_kept(x, keep)).unsqueeze(1).expand(-1, x.shape[1], -1)

    def causal_formula(self, x: Tensor) -> Tensor:
        return self._map(prefix_summaries(x).mean().to(x.dtype))

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        if is_causal:
            return super().packed_formula(x, segments, is_causal)
        return segments.to_tokens(self._map(segment_summaries(x, segments).mean().to(x.dtype)))

    def stream(self, x: Tensor, state: Summary | None = None) -> tuple[Tensor, Summary]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow."""
        prefixes = prefix_summaries(check_piece("AverageAttention.stream", x, self.width, state, Summary), state)
        return self._map(prefixes.mean().to(x.dtype)), prefixes.last()

    def _map(self, mean: Tensor) -> Tensor:
        out: Tensor = self.W_O(self.W_V(mean))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}"


def mean_of_kept(x: Tensor, keep: Tensor | None) -> Tensor:
    """(batch, n, d) → (batch, d), summed in float32 or wider; padding in x must be 0; no token gives 0."""
    total = x.sum(1, dtype=accumulation_dtype(x.dtype))
    count = x.shape[1] if keep is None else keep.sum(-1, keepdim=True).clamp(min=1)
    return (total / count).to(x.dtype)

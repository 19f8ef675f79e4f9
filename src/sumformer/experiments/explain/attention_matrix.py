"""The matrix P with head(X) = P X W_V, from the layer's own weights: n×n, so for small n only."""

from __future__ import annotations

from torch import Tensor

from sumformer.errors import NotSupportedError
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.performer_attention import FavorAttention, PerformerAttention
from sumformer.nn.random_features import positive_features
from sumformer.nn.softmax_attention import SoftmaxAttention


def attention_matrix(layer: MultiHead, x: Tensor) -> Tensor:
    """x (1, n, d_model) → (n, n), for the first head."""
    q = layer.queries(x)[0, 0]
    if isinstance(layer, LinformerAttention):
        mixed = layer.E[:, : x.shape[1]] @ x
        logits = q @ layer.keys(mixed)[0, 0].mT * layer.d_head**-0.5
        out: Tensor = logits.softmax(-1) @ layer.F[:, : x.shape[1]]
        return out
    k = layer.keys(x)[0, 0]
    if isinstance(layer, SoftmaxAttention):
        weights: Tensor = (q @ k.mT * layer.d_head**-0.5).softmax(-1)
        return weights
    if isinstance(layer, PerformerAttention | FavorAttention):
        scale = layer.d_head**-0.25 if isinstance(layer, FavorAttention) else 1.0
        kernel = positive_features(q * scale, layer.omega) @ positive_features(k * scale, layer.omega).mT
        return kernel / kernel.sum(-1, keepdim=True) if isinstance(layer, FavorAttention) else kernel
    raise NotSupportedError(f"no attention matrix is known for {type(layer).__name__}")


def stream(network: CompiledTransformer | LookUpTransformer, X: Tensor) -> list[Tensor]:
    """The residual stream (n, width) before each block and after the last."""
    x = network.read_in(X[None])
    out = [x[0]]
    for block in network.blocks:
        x = block(x)
        out.append(x[0])
    return out

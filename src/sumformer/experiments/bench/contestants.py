"""Who runs: each of our mixers and the peer of the same mechanism, at the same width, heads, features and rank.

A contestant maps (batch, n, d) to (batch, n, d). Peers are imported when asked for; one that is not installed is left
out, by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from sumformer import nn as snn


@dataclass(frozen=True)
class Shape:
    """What all contestants share: width, heads, Linformer rank k, Performer features, tokens of a window in all."""

    d: int = 256
    heads: int = 8
    rank: int = 256
    features: int = 110
    window: int = 128

    @property
    def d_head(self) -> int:
        return self.d // self.heads


@dataclass(frozen=True)
class Contestant:
    """`mechanism` names what is compared with what; `ours` tells our side from the peers'.

    One of ours is also compared with every contestant that it names in `against`.
    """

    name: str
    mechanism: str
    ours: bool
    build: Callable[[Shape, int], nn.Module]
    against: tuple[str, ...] = ()

    def meets(self, peer: Contestant) -> bool:
        """Is `peer` one that this one of ours is compared with."""
        return self.ours and not peer.ours and (peer.mechanism == self.mechanism or peer.name in self.against)


def _encoder_layer(s: Shape, n: int) -> nn.Module:
    return nn.TransformerEncoderLayer(s.d, s.heads, 4 * s.d, dropout=0.0, batch_first=True, norm_first=True)


def _mixer_layer(s: Shape, n: int) -> nn.Module:
    norms = nn.LayerNorm(s.d), nn.LayerNorm(s.d)
    return snn.ResidualBlock(snn.SumMixer(s.d), snn.FeedForward(s.d, 4 * s.d), *norms)


def _sdpa(s: Shape, n: int) -> nn.Module:
    return snn.SoftmaxAttention(s.d, nhead=s.heads)


def _performer_peer(s: Shape, n: int) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it compares versions with distutils
        from performer_pytorch import SelfAttention

    peer: nn.Module = SelfAttention(dim=s.d, heads=s.heads, dim_head=s.d_head, nb_features=s.features)
    return peer


def _linformer_peer(s: Shape, n: int) -> nn.Module:
    from linformer import LinformerSelfAttention

    peer: nn.Module = LinformerSelfAttention(dim=s.d, seq_len=n, heads=s.heads, k=min(s.rank, n - 1))
    return peer


def _x_transformers(s: Shape, n: int) -> nn.Module:
    from x_transformers.x_transformers import Attention

    class First(nn.Module):
        """x-transformers returns more than the tokens; only they are compared."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = Attention(dim=s.d, heads=s.heads, dim_head=s.d_head, flash=True)

        def forward(self, x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            out = self.attention(x)
            return out[0] if isinstance(out, tuple) else out

    return First()


def _window(s: Shape, n: int) -> nn.Module:
    return snn.SparseAttention(s.d, snn.patterns.Window(s.window // 2), nhead=s.heads)


def _star(s: Shape, n: int) -> nn.Module:
    return snn.SparseAttention(s.d, snn.patterns.Star(s.window // 2), nhead=s.heads)


def _local_peer(s: Shape, n: int) -> nn.Module:
    """The same pairs as `_window`, and no positions, which ours has not either."""
    from local_attention.transformer import LocalMHA

    sizes = {"dim": s.d, "window_size": s.window // 2, "heads": s.heads, "dim_head": s.d_head}
    peer: nn.Module = LocalMHA(**sizes, causal=False, exact_windowsize=True, use_rotary_pos_emb=False)
    return peer


CONTESTANTS = (
    Contestant("SumMixer", "sum", True, lambda s, n: snn.SumMixer(s.d)),
    Contestant("SDPA attention", "sum", False, _sdpa),
    Contestant("x-transformers attention", "sum", False, _x_transformers),
    Contestant("SumMixer layer", "layer", True, _mixer_layer),
    Contestant("nn.TransformerEncoderLayer", "layer", False, _encoder_layer),
    Contestant("FavorAttention", "performer", True, lambda s, n: snn.FavorAttention(s.d, k=s.features, nhead=s.heads)),
    Contestant("performer-pytorch", "performer", False, _performer_peer),
    Contestant(
        "LinformerAttention",
        "linformer",
        True,
        lambda s, n: snn.LinformerAttention(s.d, n_max=n, k=min(s.rank, n - 1), nhead=s.heads),
    ),
    Contestant("linformer", "linformer", False, _linformer_peer),
    Contestant("SparseAttention window", "window", True, _window, against=("SDPA attention",)),
    Contestant("local-attention", "window", False, _local_peer),
    Contestant("SparseAttention star", "star", True, _star, against=("SDPA attention",)),
)

"""N = read-out ∘ Block_ℓ ∘ … ∘ Block_1 ∘ read-in,  Block(X) = X + FC(X + Att(X)),  Att = 0 in all blocks but one.

The network of A 4.3, 4.4, 4.5, compiled from a Sumformer S. FC has one hidden layer (`SparseFeedForward`); the one
attention has W_Q = W_K = 0, so that every token gets the mean (or the sum) of the values. `ideal` is S itself: saved
beside the network, not used by forward, and so among its buffers, not its parameters.

The ledger (`ledger` in config.json, plain data) says what each weight is for. A *functional* {"of": [names],
"weights": [w…], "offset": b} is the number t = Σ w_i v_i + b; numbers are written so that they read back exactly.
"The stream at k" is the stream before block k; at k = number of blocks it is what the read-out sees.

ledger["centre"], ["radius"]   of the box, exact; u_c = (x_c − centre_c)/radius_c. Coordinate 0 is 1, 1 + c is u_c.
ledger["values"]               the ideal program, each value after those it needs:
  "name", "op", "phase"        phase "x": of the own token alone; "mean"; "psi": after the attention
  "range": [lo, hi]            holds the ideal value, for every input of the domain
  "error": e                   |stream − ideal| ≤ e, rounding included, once the value is complete
  "at", "from", "until"        complete in coordinate `at` of the stream at `from` … `until` (the last block that reads
                               it); at = −1: never by itself, its gadget writes it times its weight into the one sum
                               that uses it. A mean stands in X + Att(X) of the attention's block only.
  op "input"     "coordinate"  v = u_c
  op "mean"      "of": name    v = mean over tokens of that value
  op "function"  "of": t, "expression"          v = g(t), g an expression in x of the target language, d = 1
  op "product"   "of": [a, b]                   v = a·b, a and b functionals
  op "sum"       "of": t, "weight_error"        v = t; |t as written − t of S| ≤ weight_error
  "because"      why a range is narrower than that of the formula: {"chebyshev": …} T_k ∈ [−1, 1];
                 {"reduction": source, "component": c} the value is that reduction of S (the target's ± what S errs);
                 {"channel", "kernels", "eta", "integrand": [lo, hi]} a mean of b·ΠK̃ (times g + c, c = 1 − lo, or a
                 logarithm), K̃ = K(1 ± eta) > 0, g ∈ integrand; {"others": n} a mean over n − 1 numbers in [−1, 1];
                 {"norm2": true} a sum of squares; {"constant": source} a number.
ledger["gadgets"]              every hidden unit of every block belongs to exactly one entry of one stage:
  "kind", "values": [names], "error": [δ of each], "ranges": [[lo, hi] of each argument] (not of identity and clear)
  "stages": [[{"block", "units": [first, end), "writes": {coordinate: name}, "constants": {coordinate: c}}, …], …]
  The units of one entry read one number t: their rows of W_1 are equal, unit i is R(t + b_1[i]) and breaks at
  t = −b_1[i]. To each coordinate in `writes` they add Σ_i W_2[coordinate, i] R(t + b_1[i]) + c; b_2 sums the c.
  identity   one unit (none: a constant): what no gadget writes of a sum, t of those terms
  clear      one unit: takes a value off its coordinate in the block `until`, for the next value there
  function   one stage, one entry: g(t) for each value, |error| ≤ δ on its range
  root       the same of one value √max(t, 0), whose argument may reach 0: an error e of it counts √e
  square     L stages of one entry, P = (t − lo)/(hi − lo) ∈ [0, 1] in the first; the saw network of `gadgets/saw.py`
             with M units: chords of P² to the value, the M-saw to a workspace coordinate, which later stages read,
             overwrite, and the last one clears, by one unit more, for what lies above −2^{−6}
  product    two such entries per stage, P = (p + 1)/2 of p = ((a − a_0)/A ± (b − b_0)/B)/2, a_0 ± A and b_0 ± B the
             ranges; or one unit (a_0 b + b_0 a − a_0 b_0, the rest is within δ), or no stage at all
ledger["attention"]            {"block", "values", "means": [names], "from", "to": [coordinates]}: row i of W_V reads
                               `from`[i] (times 1/n for the unnormalised Performer), W_O writes `to`[i]
ledger["outputs"]              one functional per output: the read-out's rows, the offset in column 0
ledger["tokens"]               n, where the head depends on it, else null
Weights that no entry names are 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.block import Block
from sumformer.nn.encoder import Encoder
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, zero_padding
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.performer_attention import PerformerAttention
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import pass_on
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.nn.sparse_feed_forward import SparseFeedForward
from sumformer.nn.summarising import SummarisingModule
from sumformer.nn.summary import Summary
from sumformer.nn.token_head import TokenHead
from sumformer.nn.vector_embedding import VectorEmbedding


class CompiledTransformer(SummarisingModule):
    """(batch, n, d) → (batch, n, outputs); see above for the ledger. A pack is (1, total, d) with `cu_seqlens`."""

    def __init__(
        self,
        read_in: nn.Linear,
        blocks: Iterable[nn.Module],
        read_out: nn.Linear,
        ideal: PretrainedModule,
        ledger: dict[str, Any],
        arithmetic: str = "float64",
    ) -> None:
        super().__init__()
        self.read_in, self.blocks, self.read_out = read_in, nn.ModuleList(blocks), read_out
        if arithmetic != "float64":
            raise InputError(f"CompiledTransformer: expected arithmetic float64, got {arithmetic!r}")
        self.ideal, self.ledger, self.arithmetic = _kept(ideal), ledger, arithmetic
        self.inside = self.outside = torch.float64

    @property
    def latent_dimension(self) -> int:
        """d': what the attention carries."""
        return len(self.ledger["attention"]["means"])

    @property
    def summary_width(self) -> int:
        """That of the attention's values, which are one at least."""
        return self.attention.W_V.out_features

    @property
    def exact_n(self) -> int | None:
        """Of the head (`ledger["tokens"]`), or of S: power sums of the others are for one n."""
        head: int | None = self.ledger["tokens"]
        return self.ideal.exact_n if head is None else head

    @property
    def own_among_sources(self) -> bool:
        """Whether ψ takes the own token out of the mean, as power sums of the others do: queries are then sources."""
        return bool(getattr(self.ideal, "own_among_sources", False))

    @property
    def d(self) -> int:
        return self.read_in.in_features

    @property
    def width_of_stream(self) -> int:
        return self.read_in.out_features

    @property
    def attention_block(self) -> int:
        return int(self.ledger["attention"]["block"])

    @property
    def attention(self) -> MultiHead:
        """The one that is not 0."""
        layer: Any = self.blocks[self.attention_block]
        return layer.attention  # type: ignore[no-any-return]

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        check_tokens("CompiledTransformer", x, self.read_in.in_features)
        keep = keep_from_attention_mask("CompiledTransformer", x, attention_mask)
        segments = segments_of("CompiledTransformer", x, attention_mask, cu_seqlens, max_seqlen)
        x = self.read_in(zero_padding(x, keep).to(self.read_in.weight.dtype))
        for block in self.blocks:
            x = block(x, **pass_on(block, keep, segments, is_causal=False))
        return zero_padding(self.read_out(x), keep)

    # ---- the same network on weighted multisets: a token that counts w times costs no more than one

    def summarise(self, z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> Summary:
        """Σ_j w_j v_j of the values v = X W_V."""
        keep = keep_from_attention_mask("CompiledTransformer.summarise", z, attention_mask)
        values = zero_padding(self.attention.W_V(self._before(z)), keep)
        w = values.new_ones(z.shape[:2]) if weights is None else weights.to(values.dtype)
        w = w if keep is None else torch.where(keep, w, 0.0)
        return Summary((values * w.unsqueeze(-1)).sum(1), w.sum(1))

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """The tokens x against a summary: the attention's matrix is constant, so its head is Σ_j w_j v_j, scaled."""
        x = self._before(x)
        head = state.total * self._share(state.count).unsqueeze(-1)
        block: Any = self.blocks[self.attention_block]
        x = x + block.feed_forward(x + self.attention.W_O(head).unsqueeze(1))
        for later in self.blocks[self.attention_block + 1 :]:
            x = later(x)
        out: Tensor = self.read_out(x)
        return out

    def _before(self, x: Tensor) -> Tensor:
        x = self.read_in(x.to(self.read_in.weight.dtype))
        for block in self.blocks[: self.attention_block]:
            x = block(x)
        return x

    def _share(self, count: Tensor) -> Tensor:
        """What the attention's matrix holds: 1/n, or 1 (unnormalised), or the entry of F."""
        if isinstance(self.attention, PerformerAttention):
            return torch.ones_like(count)
        if isinstance(self.attention, LinformerAttention):
            return self.attention.F[0, 0].expand_as(count)
        return 1 / count

    # ----

    def dense(self) -> Encoder:
        """The same network as an ordinary encoder: every weight stored, every block with an attention of its own."""
        d, width = self.read_in.in_features, self.width_of_stream
        embedding, head = VectorEmbedding(d, width), TokenHead(width, self.read_out.out_features)
        with torch.no_grad():
            embedding.map.load_state_dict(self.read_in.state_dict())
            head.map.weight.copy_(self.read_out.weight)
            head.map.bias.zero_()
        blocks: list[nn.Module] = []
        for k, block in enumerate(self.blocks):
            forward: Any = block.feed_forward
            layer = self.attention if k == self.attention_block else zero_softmax(width)
            blocks.append(Block(layer, forward.dense() if isinstance(forward, SparseFeedForward) else forward))
        return Encoder(embedding, blocks, head).to(self.inside)

    def extra_repr(self) -> str:
        shape = f"ℝ^{{n×{self.read_in.in_features}}} → ℝ^{{n×{self.read_out.out_features}}}"
        return f"{shape}, {len(self.blocks)} blocks of width {self.width_of_stream}, d' = {self.latent_dimension}"


def _kept(ideal: PretrainedModule) -> PretrainedModule:
    """S with buffers for parameters: no gradient reaches it, so none should be waited for; names stay as they are."""
    for module in ideal.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach())
    return ideal


def zero_softmax(width: int) -> SoftmaxAttention:
    """Softmax attention with W_V = 0: the block is X + FC(X)."""
    layer = SoftmaxAttention(width, d_head=1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    return layer

"""Which pairs (k, j) a step computes, laid out for matrix products: O(connections) of them, in closed form.

Queries stand in blocks of c. A block meets a *slab* of keys, the same for its c queries:

    Band(w)        its own c keys and w on either side          SameBlock(ℓ)   its own c keys, ℓ | c
    First(g)       the first g keys                             BlockEnds(ℓ)   the last key of every block of ℓ

Stride(ℓ) is dense among the tokens of one residue, Drawn(r) is a list of r keys per query. The logits of a query stand
side by side in this order; `blocked` marks those that are no connection or that stand there already.

n is rounded up to N = blocks · c; in compiled code with at least one spare block: every size is then a plain expression
of n that is never 1, and one graph serves all lengths. The first `rows` queries meet all keys, apart from all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from sumformer.nn.patterns.drawn import Drawn
from sumformer.nn.patterns.relations import Band, BlockEnds, First, Length, Relation, SameBlock, Stride
from sumformer.nn.patterns.step import Step

_LEAST_BLOCK = 32
_AT_A_TIME = 2**18
SLAB = Band | SameBlock | First | BlockEnds


@dataclass(frozen=True)
class Plan:
    """Sizes and indices; tensors start with 1, or with batch where lengths differ between the sequences."""

    step: Step
    is_causal: bool
    block: int
    blocks: int
    padded: bool
    """Lengths differ between the sequences."""
    ends: Tensor | None
    """(·, number of blocks of ℓ): where the keys of BlockEnds stand."""
    drawn: Tensor | None
    """(·, N, r): where the keys of Drawn stand."""
    blocked: tuple[Tensor, ...]
    """(·, 1, N, ·) for slab, stride and lists, those that the step has: True where a logit is no connection."""
    rows_blocked: Tensor | None
    """(·, 1, rows, N): the same for the first queries."""

    @property
    def size(self) -> int:
        """N."""
        return self.block * self.blocks

    @property
    def halo(self) -> int:
        """Keys that a band needs before the first block and behind the last: w, rounded up to whole blocks."""
        return self.block * max([0, *(-(-r.w // self.block) for r in self.step.relations if isinstance(r, Band))])

    def keys(self) -> Tensor:
        """(·, N, m): the key of every logit, whether it is a connection or not; to list them, not to compute."""
        tokens = torch.arange(self.size, device=self.blocked[0].device)
        parts = []
        for relation in self.step.relations:
            if isinstance(relation, Band | SameBlock):
                before = relation.w if isinstance(relation, Band) else 0
                near = torch.arange(-before, self.block + (0 if self.is_causal else before), device=tokens.device)
                parts.append((near + tokens[:: self.block, None]).repeat_interleave(self.block, 0))
            elif isinstance(relation, Stride):
                parts.append(tokens[: relation.l, None].repeat(self.size // relation.l, 1) + tokens[:: relation.l])
            elif isinstance(relation, First):
                parts.append(tokens[: relation.g].expand(self.size, -1))
            elif isinstance(relation, BlockEnds) and self.ends is not None:
                parts.append(self.ends.unsqueeze(1).expand(-1, self.size, -1))
            elif self.drawn is not None:
                parts.append(self.drawn)
        batch = self.blocked[0].shape[0]
        return torch.cat([part.expand(batch, *part.shape[-2:]) for part in parts], -1)


def block_size(step: Step, n: int) -> int:
    """c: about as wide as the band, and a multiple of every ℓ that needs it; not too small for a matrix product.

    Fewer tokens than that are one block, as they stand.
    """
    least = _LEAST_BLOCK if torch.compiler.is_compiling() else max(1, min(_LEAST_BLOCK, n))
    for relation in step.relations:
        if isinstance(relation, SameBlock | Stride):
            return relation.l * -(-least // relation.l)
    return max([least, *(r.w for r in step.relations if isinstance(r, Band))])


def count_blocks(step: Step, n: int) -> int:
    """Room for n tokens, and for the first `rows` and g, whether or not they exist."""
    c, first = block_size(step, n), max([step.rows, *(r.g for r in step.relations if isinstance(r, First))])
    if torch.compiler.is_compiling():
        return n // c + 2 + first // c
    return max(1, -(-n // c), -(-first // c))


def plan(step: Step, n: int, device: torch.device, is_causal: bool = False, lengths: Tensor | None = None) -> Plan:
    """The plan for n tokens, of which the first `lengths` (batch,) of every sequence are real; None means all are.

    Without `lengths` it is built once for each (step, n, device); compiled code builds it inline, from symbols.
    """
    if not torch.compiler.is_compiling():
        step = step.within(max(1, n))
    if lengths is not None:
        return _build(step, n, device, is_causal, lengths.view(-1, 1, 1, 1))
    if torch.compiler.is_compiling():
        return _build(step, n, device, is_causal, n)
    return _cached(step, n, device, is_causal)


@lru_cache(maxsize=16)
def _cached(step: Step, n: int, device: torch.device, is_causal: bool) -> Plan:
    return _build(step, n, device, is_causal, n)


def _build(step: Step, n: int, device: torch.device, is_causal: bool, real: Length) -> Plan:
    c = block_size(step, n)
    blocks = count_blocks(step, n)
    tokens = torch.arange(c * blocks, device=device)
    masks: list[Tensor] = []
    ends = drawn = None
    for i, relation in enumerate(step.relations):
        earlier = step.relations[:i]
        if isinstance(relation, BlockEnds):
            ends = relation.ends(torch.arange(c * blocks // relation.l + 1, device=device), real)
            masks.append(_columns(tokens, ends, real, earlier, is_causal, c))
            ends = ends.view(-1, ends.shape[-1]).clamp(min=0)
        elif isinstance(relation, First):
            masks.append(_columns(tokens, tokens[: relation.g], real, earlier, is_causal, c))
        elif isinstance(relation, Stride):
            masks.append(_residues(tokens, relation.l, real, earlier, is_causal))
        elif isinstance(relation, Drawn):
            drawn, mask = _draws(tokens, relation, real, earlier, is_causal)
            masks.append(mask)
        elif isinstance(relation, Band | SameBlock):
            masks.append(_near(tokens, relation, real, earlier, is_causal, c))
    batch = real.shape[0] if isinstance(real, Tensor) else 1
    pairs = list(zip(masks, step.relations, strict=True))
    slab = [mask.expand(batch, -1, c, -1) for mask, relation in pairs if isinstance(relation, SLAB)]
    lists = [mask.expand(batch, -1, -1) for mask, relation in pairs if not isinstance(relation, SLAB)]
    slab = [(torch.cat(slab, -1) if len(slab) > 1 else slab[0]).flatten(1, 2)] if slab else []
    blocked = tuple(piece.unsqueeze(1) for piece in slab + lists)
    rows_blocked = None
    if step.rows:
        k = tokens[: step.rows].view(1, 1, -1, 1)
        rows_blocked = (tokens >= real) | _too_late(k, tokens, is_causal)
    return Plan(step, is_causal, c, blocks, isinstance(real, Tensor), ends, drawn, blocked, rows_blocked)


def _near(
    tokens: Tensor, relation: Band | SameBlock, n: Length, earlier: Sequence[Relation], is_causal: bool, c: int
) -> Tensor:
    """(·, blocks, c, ·). The relation looks the same from every block: decided once, on c queries, then cut off."""
    before = relation.w if isinstance(relation, Band) else 0
    after = 0 if is_causal else before
    k, j = torch.arange(c, device=tokens.device).unsqueeze(-1), torch.arange(-before, c + after, device=tokens.device)
    outside = ~relation.contains(k, j, c) | _too_late(k, j, is_causal)
    start = tokens.view(1, -1, 1, c)[..., :1]
    missing = (j + start < 0) | (j + start >= n)
    return _with_earlier(outside | missing, start + k, start + j, n, earlier)


def _columns(tokens: Tensor, j: Tensor, n: Length, earlier: Sequence[Relation], is_causal: bool, c: int) -> Tensor:
    """(·, blocks, c or 1, ·): the same keys for all. The last end may stand there again: the first counts."""
    k = tokens.view(1, -1, c, 1)
    again = torch.cat([torch.zeros_like(j[..., :1], dtype=torch.bool), j[..., 1:] == j[..., :-1]], -1)
    missing = (j < 0) | (j >= n) | again
    if not is_causal and all(isinstance(relation, SameBlock) and relation.l == c for relation in earlier):
        k = k[:, :, :1]  # the c queries of a block all see the same

    def decide(k: Tensor) -> Tensor:
        return _with_earlier(missing | _too_late(k, j, is_causal) | (k < 0), k, j, n, earlier)

    if torch.compiler.is_compiling():
        return decide(k)
    # A few blocks at a time: what is made on the way stays in the cache.
    few = max(1, _AT_A_TIME // max(1, k.shape[2] * missing.numel()))
    return torch.cat([decide(some) for some in torch.split(k, few, dim=1)], 1)


def _residues(tokens: Tensor, stride: int, n: Length, earlier: Sequence[Relation], is_causal: bool) -> Tensor:
    """(·, N, N/ℓ): query k meets the keys k mod ℓ + bℓ. What holds by distance holds for every residue alike."""
    k, j = tokens.view(1, -1, stride, 1), tokens.view(1, -1, stride, 1).transpose(1, 3)
    bands = [relation for relation in earlier if isinstance(relation, Band)]
    others = [relation for relation in earlier if not isinstance(relation, Band)]
    known = _with_earlier(_too_late(k[:, :, :1], j[:, :, :1], is_causal), k[:, :, :1], j[:, :, :1], n, bands)
    known = known.expand(1, k.shape[1], 1, k.shape[1]).contiguous()  # j is transposed: else all that follows would be
    return _with_earlier((j >= n).contiguous() | known, k, j, n, others).flatten(1, 2)


def _draws(
    tokens: Tensor, relation: Drawn, n: Length, earlier: Sequence[Relation], is_causal: bool
) -> tuple[Tensor, Tensor]:
    k, n = tokens.view(1, -1, 1), n.squeeze(-1) if isinstance(n, Tensor) else n
    j, exist = relation.places(k, k + 1 if is_causal else n)
    missing = ~exist | (j >= n) | _too_late(k, j, is_causal)
    return torch.where(missing, 0, j), _with_earlier(missing, k, j, n, earlier)


def _with_earlier(blocked: Tensor, k: Tensor, j: Tensor, n: Length, earlier: Sequence[Relation]) -> Tensor:
    """Blocked, or a connection that an earlier relation has."""
    for relation in earlier:
        blocked = blocked | relation.contains(k, j, n)
    return blocked


def _too_late(k: Tensor, j: Tensor, is_causal: bool) -> Tensor:
    return j > k if is_causal else torch.zeros((), dtype=torch.bool, device=k.device)

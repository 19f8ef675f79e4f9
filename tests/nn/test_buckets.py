"""Padding at most doubles a pack, in few batches, and every token comes back to its place."""

from __future__ import annotations

import math

import pytest
import torch
from largest_tensor import LargestTensor

from sumformer.nn import FavorAttention, SeparableConvolution, SoftmaxAttention, SparseAttention, SumMixer, patterns
from sumformer.nn.segments import segments_of

D = 4


def pack(lengths):
    x = torch.randn(1, sum(lengths), D, generator=torch.Generator().manual_seed(0))
    cu_seqlens = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    return x, cu_seqlens, segments_of("test", x, None, cu_seqlens, max(lengths))


@pytest.mark.parametrize("seed", range(20))
def test_few_batches_with_little_padding(seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = (2 ** (10 * torch.rand(50, generator=generator))).long() * (torch.rand(50, generator=generator) > 0.2)
    lengths = lengths.tolist()
    x, _, segments = pack(lengths)
    shapes = []

    def read(padded, keep):
        shapes.append(padded.shape[:2])
        assert keep is None or torch.equal(padded.abs().sum(-1) > 0, keep)
        return 2 * padded

    assert torch.equal(segments.in_batches("test", x, read), 2 * x)
    real = [n for n in lengths if n]
    assert sum(rows * n for rows, n in shapes) <= 2 * sum(real)
    assert sum(rows for rows, _ in shapes) == len(real)
    assert len(shapes) <= math.log2(max(real) / min(real)) + 2


def test_equal_lengths_are_one_batch_without_a_mask():
    x, _, segments = pack([3, 0, 3, 3])
    (batch,) = segments.buckets.batches
    assert batch.keep is None
    assert torch.equal(batch.pad(x), x.reshape(3, 3, D))


def test_similar_lengths_are_one_batch():
    assert len(pack([7, 9, 8, 4])[2].buckets.batches) == 1
    assert len(pack([7, 9, 8, 4, 1, 1, 1])[2].buckets.batches) == 3


MODULES = {
    "convolution": lambda: SeparableConvolution(D),
    "favor": lambda: FavorAttention(D, k=8),
    "softmax": lambda: SoftmaxAttention(D),
    "window": lambda: SparseAttention(D, patterns.Window(8)),
    "sum_mixer": lambda: SumMixer(D),
}


@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("name", MODULES)
def test_one_long_sequence_among_short_ones(name, is_causal):
    """500 sequences of 10 tokens and one of 2,000: no tensor has room for 501 sequences of 2,000."""
    x, cu_seqlens, _ = pack([10] * 250 + [2_000] + [10] * 250)
    module = MODULES[name]()
    with torch.no_grad(), LargestTensor() as seen:
        out = module(x, cu_seqlens=cu_seqlens, max_seqlen=2_000, is_causal=is_causal)
    assert out.shape == x.shape
    assert seen.numel < 501 * 2_000 * D

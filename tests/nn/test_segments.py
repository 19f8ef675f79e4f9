from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn.segments import segments_of

CU = torch.tensor([0, 0, 2, 2, 5, 5], dtype=torch.int32)  # lengths 0, 2, 0, 3, 0


def of(x, max_seqlen=3):
    return segments_of("test", x, None, CU, max_seqlen)


def test_ids_ranks_and_lengths():
    segments = of(torch.zeros(1, 5, 1))
    assert segments.ids.tolist() == [1, 1, 3, 3, 3]
    assert segments.ranks.tolist() == [0, 1, 0, 1, 2]
    assert segments.lengths.tolist() == [0, 2, 0, 3, 0]
    assert segments_of("test", torch.zeros(1, 5, 1), None, None, None) is None


def test_sums_maxima_and_back():
    x = torch.tensor([[[1.0], [2.0], [-5.0], [-3.0], [-4.0]]])
    segments = of(x)
    assert segments.sums(x).flatten().tolist() == [0, 3, 0, -12, 0]
    assert segments.sums(x.bfloat16()).dtype == torch.float64
    lowest = torch.finfo(x.dtype).min
    assert segments.maxima(x).flatten().tolist() == [lowest, 2, lowest, -3, lowest]
    assert segments.to_tokens(torch.arange(5.0)).tolist() == [[1, 1, 3, 3, 3]]


def test_in_batches():
    """What is read beyond the sequences is dropped; max_seqlen is asked for, as compiled code pads to it."""
    x, seen = torch.arange(1.0, 11).reshape(1, 5, 2), []

    def read(padded, keep):
        seen.append(keep)
        assert torch.equal(padded.abs().sum(-1) > 0, keep)
        return 10 * padded + 1

    assert torch.equal(of(x, 7).in_batches("test", x, read), 10 * x + 1)
    assert [keep.tolist() for keep in seen] == [[[True, True, False], [True, True, True]]]
    with pytest.raises(InputError, match="test: expected max_seqlen beside cu_seqlens, got None"):
        of(x, None).in_batches("test", x, read)


def test_a_decrease_an_end_and_a_start_are_named_at_once():
    wrong = torch.tensor([1, 4, 2], dtype=torch.int32)
    with pytest.raises(InputError, match="got a start at 1, a decrease by 2, an end at 2"):
        segments_of("test", torch.zeros(1, 5, 1), None, wrong, None)

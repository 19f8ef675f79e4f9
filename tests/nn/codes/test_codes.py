"""The codes of A 2.13: every one returns the multiset it was given, and all agree."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.errors import InputError
from sumformer.nn.codes import CODES, LaneCode, SyndromeCode, make_code, smallest_code


@st.composite
def multisets(draw):
    n, cells = draw(st.integers(1, 9)), draw(st.integers(1, 300))
    rows = draw(st.lists(st.lists(st.integers(0, cells - 1), min_size=n, max_size=n), min_size=1, max_size=4))
    return cells, torch.tensor(rows)


@given(multisets())
@settings(max_examples=80, deadline=None)
def test_every_code_returns_the_others(case):
    cells, c = case
    n = c.shape[1]
    expected = c[:, 1:].sort(1).values
    for name in CODES:
        code = make_code(name, cells, n)
        rest = code.sum(c) - code.encode(c[:, 0])
        assert torch.equal(code.decode(rest, n - 1), expected), name


@given(multisets())
@settings(max_examples=60, deadline=None)
def test_decoding_without_sizes_that_depend_on_numbers(case):
    """The form that compilers and exporters see, as often as not with tokens in one cell."""
    cells, c = case
    c[:, : c.shape[1] // 2] = c[:, :1].clone()
    n = c.shape[1]
    for name in CODES[2:]:
        code = make_code(name, cells, n)
        rest = code.sum(c) - code.encode(c[:, 0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.compiler, "is_compiling", lambda: True)
            assert torch.equal(code.decode(rest, n - 1), c[:, 1:].sort(1).values), name


@given(multisets())
@settings(max_examples=40, deadline=None)
def test_the_sum_is_the_sum_of_the_codes(case):
    cells, c = case
    for name in CODES:
        code = make_code(name, cells, c.shape[1])
        naive = code.encode(c).sum(1)
        assert bool((code.sum(c) == naive).all()), name
        assert code.encode(c).shape == (*c.shape, code.latent_dimension)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("n", [2, 8])
def test_extreme_multisets_over_many_cells(name, n):
    cells = 10_000
    c = torch.tensor([[0] * n, [cells - 1] * n, [0] * (n - 1) + [cells - 1], list(range(cells - n, cells))])
    code = make_code(name, cells, n)
    rest = code.sum(c) - code.encode(c[:, 0])
    assert torch.equal(code.decode(rest, n - 1), c[:, 1:].sort(1).values)


@pytest.mark.parametrize(("name", "cells"), [("lanes", 50), ("lanes n+1", 50), ("syndrome", 5000)])
def test_a_sum_that_is_off_by_less_than_a_half_is_still_read(name, cells):
    code = make_code(name, cells, 5)
    c = torch.randint(cells, (20, 5), generator=torch.Generator().manual_seed(0))
    total = code.sum(c)
    rest = torch.where(total < 2**50, total + 0.4 * (total != 0), total) - code.encode(c[:, 0])
    assert torch.equal(code.decode(rest, 4), c[:, 1:].sort(1).values)


@pytest.mark.parametrize("name", CODES[:-1])
def test_too_few_cells_are_noticed(name):
    code = make_code(name, 20, 4)
    with pytest.raises(InputError, match="is not the code"):
        code.decode(code.sum(torch.tensor([[1, 2]])), 3)


def test_power_sums_of_no_multiset_are_noticed():
    code = make_code("syndrome", 20, 4)
    with pytest.raises(InputError, match="is not the code"):
        code.decode(torch.tensor([[0.0, 10.0, 0.0]], dtype=torch.float64), 3)  # z³ − 5z: 5 is no square mod 23
    with pytest.raises(InputError, match="determine 3 cells, not 4"):
        code.decode(torch.zeros(1, 3, dtype=torch.float64), 4)


def test_dimensions_are_those_of_the_statement():
    assert make_code("integer", 10_000, 8).latent_dimension == 1
    assert make_code("lanes", 10_000, 8).latent_dimension == 770  # ⌈10⁴ / ⌊53/4⌋⌉
    assert make_code("lanes n+1", 10_000, 8).latent_dimension == 625  # ⌈10⁴ / ⌊53/log₂ 9⌋⌉
    assert make_code("syndrome", 10_000, 8).latent_dimension == 7
    assert smallest_code(10_000, 8) == "syndrome"
    assert smallest_code(10, 8) == "lanes"
    assert smallest_code(10_000, 8, exact=False) == "lanes n+1"
    for cells in (1, 5, 16, 17, 40, 100):
        chosen = make_code(smallest_code(cells, 4), cells, 4).latent_dimension
        assert chosen == min(make_code(k, cells, 4).latent_dimension for k in ("lanes", "lanes n+1", "syndrome"))


def test_lanes_never_carry():
    code = LaneCode(13, 8, 16)
    assert code.digits == 13
    full = code.sum(torch.full((1, 8), 12))
    assert float(full[0, 0]) < 2.0**53
    assert torch.equal(code.decode(full, 8), torch.full((1, 8), 12))


def test_what_float64_cannot_hold_is_refused():
    with pytest.raises(InputError, match="do not fit float64"):
        SyndromeCode(2**26, 8)
    with pytest.raises(InputError, match="one of"):
        make_code("huffman", 4, 4)
    with pytest.raises(InputError, match="at least one"):
        make_code("lanes", 0, 4)

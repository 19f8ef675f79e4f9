"""Where float64 is not exact: ties that are summed, products that underflow, sums that overflow."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hand_made import CELL, LEAST, OUT, TOKENS, HandMade
from torch.nn.functional import scaled_dot_product_attention

from sumformer.certificates.checker import check
from sumformer.certificates.checker.deep.dyadic import FLOOR, affine, spread
from sumformer.certificates.checker.deep.simulation import _head
from sumformer.theorems.construction import load


def written(folder, low=0.5):
    """What N gives where all tokens lie in the upper cell."""
    return load(folder)(low + torch.rand(64, TOKENS, 1, dtype=torch.float64) / 2)


def test_what_is_written_by_hand_verifies(tmp_path):
    made = HandMade(2.0**20, 2.0**-47)
    made.attend(-4096.0, 1.0, CELL, 1.0, 1.0)
    made.stack(*made.empty(1, 1))
    folder = made.save(tmp_path)
    assert check(folder).verified, check(folder).failures
    assert float(written(folder).abs().max()) == 0


def test_the_mean_of_many_equal_numbers_is_rounded(tmp_path):
    """Sixteen times w, added and divided by 16, is not w; the difference is multiplied up."""
    random.seed(1)
    while True:
        w = float(random.randrange(2**49, 2**50) * 2 + 1)
        q = torch.full((1, 2, TOKENS, 1), -4096.0, dtype=torch.float64)
        mixed = scaled_dot_product_attention(q, torch.ones_like(q), torch.full_like(q, w), scale=1.0)
        if bool((mixed > w).all()):
            break
    made = HandMade(2.0**20, 2.0**-47)
    made.attend(-4096.0, 1.0, CELL, w, 1.0)
    w1, b1, w2 = made.empty(1, 1)
    w1[0, 0, [CELL, LEAST]], w2[0, OUT, 0] = [-w, 1], 2.0**20
    made.stack(w1, b1, w2)
    folder = made.save(tmp_path)
    assert float(written(folder).min()) > 1e5
    assert not check(folder).verified


def test_a_product_that_underflows_is_not_exact(tmp_path):
    """2^-1074 + 2^-1075 is one or two units of the last place, by the order; then it is multiplied up."""
    made = HandMade(2.0**20, 2.0**-47)
    made.attend(-4096.0, 1.0, CELL, 1.0, 1.0)
    w1, b1, w2 = made.empty(8, 2)
    b1[0, 0], w2[0, [2, 3], 0] = 2.0**-600, 1
    w1[1, :, 2], w1[1, :, 3], w2[1, 4, 0] = 2.0**-474, 2.0**-475, 2.0**400
    w1[2, 0, 2], w2[2, [2, 3], 0] = 1, -1
    w1[3, 0, 4], w2[3, 6, 0], w1[4, 0, 4], w2[4, 4, 0] = 1, 2.0**400, 1, -1
    w1[5, 0, 6], w2[5, 7, 0], w1[6, 0, 6], w2[6, 6, 0] = 1, 2.0**200, 1, -1
    w1[7, 0, 7], w1[7, 0, LEAST], w2[7, OUT, 0] = -(2.0**94), 2.0**21, 1
    made.stack(w1, b1, w2)
    assert not check(made.save(tmp_path)).verified


def test_values_whose_sum_overflows_before_it_is_divided(tmp_path):
    """A head that nothing reads is ∞ then, and 0 times that no number."""
    made = HandMade(1.0, 2.0**-40)
    made.attend(-4096.0, 1.0, CELL, 1.0, 1.0)
    made.attend(0.0, 0.0, LEAST, 1.75e308 / 15.2, 0.0)
    made.stack(*made.empty(1, 1))
    folder = made.save(tmp_path)
    assert bool(written(folder).isnan().any())
    found = check(folder)
    assert not found.verified
    assert "overflow" in " ".join(found.failures)


TIES = [(1, 2.0**52 + 1, True), (3, 1.0, False), (4, 2.0**52 + 1, True), (8, 2.0**52 + 1, False)]
TIES += [(8, 2.0**49 + 1, True), (16, 0.0, True), (16, 2.0**48 + 1, True), (16, 2.0**50 + 1, False)]


@pytest.mark.parametrize(("count", "value", "sure"), TIES)
def test_ties_are_shared_exactly_where_all_partial_sums_are(count, value, sure):
    same, who = np.full((1, count), value), np.ones((count, count), dtype=np.bool_)
    head, unsure = _head(np.full((1, count), 4096.0), np.ones((1, count)), same, who)
    assert (head == value).all()
    assert bool(unsure[0]) != sure
    if sure:  # one after the other, as no order is asked for
        total = 0.0
        for _ in range(count):
            total += value
        assert total / count == value


def test_four_equal_numbers_are_always_shared_exactly():
    v = np.random.default_rng(0).integers(2**52, 2**53, 100_000).astype(np.float64)
    assert (((v + v + v + v) / 4) == v).all()
    assert (((v + v) + (v + v)) / 4 == v).all()


def test_errors_do_not_underflow():
    tiny = np.array([[2.0**-600, 2.0**-600]])
    value, error, _ = affine(tiny, np.array([[2.0**-500, 0.0], [0.0, 0.0]]))
    assert (value == 0).all()
    assert error.tolist() == [[FLOOR, 0.0]]  # a sum of zeros is exact
    assert spread(tiny, np.array([[2.0**-500, 0.0], [0.0, 0.0]])).tolist() == [[FLOOR, 0.0]]
    assert affine(tiny, np.array([[2.0**300, 2.0**290]]))[1].tolist() == [[0.0]]

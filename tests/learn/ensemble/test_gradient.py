"""Gradients by hand are autograd's, for every activation, and the number of threads changes nothing but rounding."""

import pytest
import torch

from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train
from sumformer.learn.ensemble.derivatives import DERIVATIVES
from sumformer.learn.ensemble.gradient import GradientByHand, gradient_by_autograd
from sumformer.learn.ensemble.members_over_threads import TOGETHER, over_threads, slices
from sumformer.nn.mlp import ACTIVATIONS

MEMBERS = [Member(2, 3, 2, seed=0), Member(1, 5, 1, seed=1), Member(2, 9, 2, seed=2)]


def poisoned(gradient):
    """Memory that is read before it is written shows."""
    for tensor in (gradient.result, *gradient.deltas, gradient.pooled, gradient.d_pooled, gradient.d_total):
        tensor.fill_(torch.nan)


def compare(ensemble, members, batch=6, n=4):
    generator = torch.Generator().manual_seed(0)
    flat = ensemble.flat.detach()[members].requires_grad_()
    by_hand = GradientByHand(ensemble, flat.detach(), batch, n)
    w = torch.rand(len(flat), generator=generator, dtype=flat.dtype)
    for _ in range(2):  # the memory of the first is used again
        X = torch.randn(len(flat), batch, n, ensemble.d, generator=generator, dtype=flat.dtype)
        Y = torch.randn(len(flat), batch, n, ensemble.d_out, generator=generator, dtype=flat.dtype)
        wanted = gradient_by_autograd(ensemble, flat, X, Y, w)
        poisoned(by_hand)
        torch.testing.assert_close(by_hand(X, Y, w), wanted, rtol=1e-10, atol=1e-12)
        assert float(wanted.abs().amax(1).min()) > 1e-3


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_by_hand_and_by_autograd_agree(activation, mean, depth):
    ensemble = SumformerEnsemble(MEMBERS, hidden=7, depth=depth, activation=activation, mean=mean).double()
    compare(ensemble, slice(None))
    compare(ensemble, slice(1, 3))


@pytest.mark.parametrize("d_out", [1, 20])  # narrow outputs are kept transposed
@pytest.mark.parametrize("mean", [False, True])
def test_by_hand_and_by_autograd_agree_on_monomials(mean, d_out):
    members = [Member(2, 9, d_out, seed=s) for s in range(2)]
    compare(SumformerEnsemble(members, hidden=6, depth=2, mean=mean, degree=3).double(), slice(None))


def test_every_activation_has_a_derivative():
    assert set(DERIVATIVES) == set(ACTIVATIONS)


@pytest.mark.parametrize(("members", "size", "workers"), [(1, 10, 1), (32, 51_200, 2), (7, 10, 3), (5, TOGETHER, 2)])
def test_blocks_hold_every_member_once(members, size, workers):
    blocks = slices(members, size, workers)
    assert [m for block in blocks for m in range(members)[block]] == list(range(members))
    assert len(blocks) % workers == 0 or len(blocks) == members
    assert all((block.stop - block.start - 1) * size < TOGETHER for block in blocks)


def test_threads_are_shared_and_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with over_threads(2) as pool:
            assert pool is not None
            assert list(pool.map(lambda _: torch.get_num_threads(), range(4))) == [2] * 4
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_members_train_alike_on_any_number_of_threads():
    generator = torch.Generator().manual_seed(3)
    X = torch.rand(1, 24, 3, 2, generator=generator, dtype=torch.float64)
    Y = X * X.sum(2, keepdim=True)
    before, flats, errors = torch.get_num_threads(), [], []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        ensemble = SumformerEnsemble([Member(2, 3, 2, seed=s) for s in range(5)], hidden=6, depth=2).double()
        try:
            errors.append(train(ensemble, (X, Y), (X, Y), Recipe(3, 8)).errors)
        finally:
            torch.set_num_threads(before)
        flats.append(ensemble.flat.detach())
    torch.testing.assert_close(*flats, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(*errors, rtol=1e-12, atol=1e-14)

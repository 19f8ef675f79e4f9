from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn import LinformerAttention, SoftmaxAttention, SparseAttention, patterns
from sumformer.nn.normalisers import Entmax15, Hardmax, Softmax, Sparsemax, entmax15, hardmax, softmax, sparsemax
from sumformer.testing import relative_error

ALL = [Softmax(), Hardmax(), Sparsemax(), Entmax15()]
IDS = [type(rho).__name__ for rho in ALL]


def bisect(z, weight):
    """The τ at which Σ weight(z − τ) = 1, by halving an interval that holds it."""
    low, high = z.amax(-1, keepdim=True) - 1, z.amax(-1, keepdim=True)
    for _ in range(100):
        middle = (low + high) / 2
        too_low = weight(z - middle).sum(-1, keepdim=True) > 1
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return weight(z - (low + high) / 2)


def rows(*shape, scale=1.0, dtype=torch.float64, seed=0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 9, 300])
def test_sparsemax_and_entmax_agree_with_bisection(n, scale):
    z = rows(20, n, scale=scale)
    assert torch.allclose(sparsemax(z), bisect(z, lambda u: u.relu()), atol=1e-12, rtol=0)
    assert torch.allclose(entmax15(z), bisect(z / 2, lambda u: u.relu().square()), atol=1e-12, rtol=0)


@pytest.mark.parametrize("rho", [sparsemax, entmax15])
def test_ties_share_alike(rho):
    weights = rho(torch.tensor([[2.0, 2.0, 2.0, -9.0], [0.0, 0.0, 0.0, 0.0]], dtype=torch.float64))
    wanted = torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0.0], [0.25] * 4], dtype=torch.float64)
    assert torch.allclose(weights, wanted, atol=1e-15)


def test_hardmax_averages_ties():
    assert hardmax(torch.tensor([1.0, 3.0, 3.0, 0.0])).tolist() == [0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("rho", [softmax, sparsemax, entmax15])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients(rho, masked):
    z = rows(6, 7, scale=0.7).requires_grad_(True)
    keep = rows(6, 7, seed=1) > -0.5 if masked else None
    if keep is not None:
        keep[0] = False
    assert torch.autograd.gradcheck(lambda y: rho(y, keep), (z,), atol=1e-6)


@pytest.mark.parametrize("rho", [sparsemax, entmax15])
def test_second_gradients(rho):
    assert torch.autograd.gradgradcheck(rho, (rows(3, 5, scale=0.7).requires_grad_(True),), atol=1e-5)


@pytest.mark.parametrize("rho", ALL, ids=IDS)
def test_masked_entries_are_as_if_absent(rho):
    z, places = rows(5, 8), [0, 3, 4, 9, 10, 11, 17, 19]
    padded = torch.full((5, 20), torch.nan, dtype=torch.float64)
    padded[:, places] = z
    keep = torch.zeros(20, dtype=torch.bool)
    keep[places] = True
    weights = rho(padded, keep)
    assert relative_error(weights[:, places], rho(z)) <= 1e-15
    assert (weights[:, ~keep] == 0).all()


@pytest.mark.parametrize("rho", ALL, ids=IDS)
def test_a_row_without_keys_is_zero_and_so_is_its_gradient(rho):
    z = torch.tensor([[1.0, torch.inf, torch.nan], [1.0, 2.0, torch.nan]]).requires_grad_(True)
    keep = torch.tensor([[False, False, False], [True, True, False]])
    weights = rho(z, keep)
    assert (weights[0] == 0).all()
    assert weights[1].sum().item() == pytest.approx(1)
    if weights.requires_grad:  # hardmax is piecewise constant
        (weights * torch.tensor([3.0, -1.0, 5.0])).sum().backward()
        assert z.grad.isfinite().all()
        assert (z.grad[~keep] == 0).all()


def test_the_usual_mask_of_minus_infinity_is_not_safe():
    naive = torch.zeros(1, 3).masked_fill(torch.ones(1, 3, dtype=torch.bool), -torch.inf).softmax(-1)
    assert naive.isnan().all()
    assert (softmax(torch.zeros(1, 3), torch.zeros(1, 3, dtype=torch.bool)) == 0).all()


@pytest.mark.parametrize("rho", ALL, ids=IDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_long_rows_in_low_precision_sum_to_one(rho, dtype):
    z = rows(4, 4096, scale=2.0, dtype=dtype)
    keep = rows(4, 4096, seed=1) > 0
    for weights in (rho(z), rho(z, keep)):
        assert weights.dtype == dtype
        assert (weights >= 0).all()
        assert torch.allclose(
            weights.double().sum(-1), torch.ones(4, dtype=torch.float64), atol=1e-5 if dtype == torch.float32 else 3e-2
        )


@pytest.mark.parametrize("wrong", ["hardmax", Hardmax, 3])
@pytest.mark.parametrize(
    "make",
    [
        lambda rho: SoftmaxAttention(8, 2, normaliser=rho),
        lambda rho: LinformerAttention(8, n_max=4, k=2, normaliser=rho),
        lambda rho: SparseAttention(8, patterns.Window(1), normaliser=rho),
    ],
    ids=["SoftmaxAttention", "LinformerAttention", "SparseAttention"],
)
def test_what_is_no_normaliser_is_refused_when_given(make, wrong):
    with pytest.raises(InputError, match=r"Attention: expected normaliser .* Hardmax\(\), Sparsemax\(\), Entmax15\(\)"):
        make(wrong)

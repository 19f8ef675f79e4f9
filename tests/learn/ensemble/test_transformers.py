"""A Transformer ensemble: members see their own masks only, and learn."""

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.learn.ensemble.transformers import TransformerEnsemble


def masks(M=2, depth=2, heads=2, n=6):
    full = torch.ones(M, depth, heads, n, n, dtype=torch.bool)
    full[0] = torch.eye(n, dtype=torch.bool)
    return full


def test_a_member_with_self_loops_only_does_not_see_others():
    model = TransformerEnsemble(masks(), symbols=5, d_model=8, feed_forward=16)
    X = torch.randint(5, (3, 6), generator=torch.Generator().manual_seed(0))
    other = X.clone()
    other[:, 0] = (other[:, 0] + 1) % 5
    with torch.no_grad():
        a, b = model(X), model(other)
    assert a.shape == (2, 3, 6, 5)
    assert torch.equal(a[0, :, 1:], b[0, :, 1:])
    assert not torch.allclose(a[1, :, 1:], b[1, :, 1:])


def test_members_do_not_depend_on_each_other():
    X = torch.randint(5, (3, 6), generator=torch.Generator().manual_seed(0))
    both = TransformerEnsemble(masks(), symbols=5, d_model=8, feed_forward=16)
    one = TransformerEnsemble(masks()[:1], symbols=5, d_model=8, feed_forward=16)
    assert torch.equal(one.flat[0], both.flat[0])
    torch.testing.assert_close(one(X)[0], both(X)[0])
    (gradient,) = torch.autograd.grad(both(X)[0].square().sum(), both.flat)
    assert float(gradient[0].abs().max()) > 0
    assert float(gradient[1].abs().max()) == 0


def test_bad_input_is_refused():
    with pytest.raises(InputError):
        TransformerEnsemble(masks().float(), 5)
    with pytest.raises(InputError):
        TransformerEnsemble(masks(heads=3), 5, d_model=8)
    with pytest.raises(ShapeError):
        TransformerEnsemble(masks(), 5, 8)(torch.zeros(2, 7, dtype=torch.long))

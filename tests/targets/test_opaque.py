"""Functions known by their values: what refutes equivariance or a modulus is shown, the rest is an assumption."""

import pytest
import torch

from sumformer.errors import InputError, LipschitzRefutedError, NotEquivariantError, ShapeError, TargetError
from sumformer.targets import target
from sumformer.targets.opaque import OpaqueTarget


def centred(X):
    return X - X.mean(1, keepdim=True)


def running(X):
    return X.cumsum(1)


def first_of_equals(X):
    """Equivariant unless two tokens are equal: then the first of them is preferred."""
    best = torch.nn.functional.one_hot(X[..., 0].argmax(1), X.shape[1])
    return best[..., None].to(X.dtype)


def test_a_function_of_tensors_becomes_a_target():
    f = target(centred, n=4, d=2, lipschitz=1.0)
    assert isinstance(f, OpaqueTarget)
    assert (f.width, f.d, str(f.tokens)) == (2, 2, "4")
    assert f.source == f"opaque:{__name__}:centred"
    assert "assumed Lipschitz constant 1" in repr(f)
    X = torch.rand(3, 4, 2, dtype=torch.float64)
    assert torch.equal(f(X), centred(X))
    assert any(a.startswith("modulus:") and "1.0·δ" in a for a in f.assumptions)


@pytest.mark.parametrize("function", [running, first_of_equals])
def test_a_function_of_the_order_is_refuted_by_a_witness(function):
    with pytest.raises(NotEquivariantError, match="not permutation-equivariant") as refusal:
        target(function, n=4, d=1, lipschitz=10.0)
    error = refusal.value
    X, order = error.X[None], list(error.permutation)
    gap = (function(X[:, order]) - function(X)[:, order]).abs().max()
    assert float(gap) == pytest.approx(error.difference)
    assert error.difference > 1e-3


def test_a_wrong_modulus_is_refuted_by_a_witness():
    with pytest.raises(LipschitzRefutedError) as refusal:
        target(lambda X: X + 3 * X.mean(1, keepdim=True), n=4, lipschitz=1.0)
    error = refusal.value
    assert error.claimed == 1.0 < error.found <= 3.0
    assert torch.equal(error.X[0], error.Y[0])


def test_wrong_use_is_explained():
    with pytest.raises(InputError, match="number of tokens"):
        target(centred, n="any", lipschitz=1.0)
    with pytest.raises(InputError, match="finite Lipschitz constant"):
        target(centred, n=3, lipschitz=-1.0)
    with pytest.raises(InputError, match="is for a Python function"):
        target("mean(y)", n=3, lipschitz=1.0)
    with pytest.raises(ShapeError, match="width"):
        target(lambda X: X.sum(), n=3, lipschitz=1.0)
    with pytest.raises(InputError, match="needs a formula"):
        target(centred, n=3, lipschitz=1.0, positions=True)
    with pytest.raises(TargetError, match="needs lipschitz"):
        target(centred, n=3)


def test_values_that_are_not_finite_are_named():
    with pytest.raises(InputError, match=r"is not finite at X = \[\["):
        target(lambda X: X.log(), n=3, lipschitz=1.0)


def test_a_function_may_write_into_what_it_is_given():
    f = target(lambda X: X.sub_(X.mean(1, keepdim=True)), n=3, lipschitz=1.0)
    X = torch.rand(2, 3, 1, dtype=torch.float64)
    before = X.clone()
    assert torch.allclose(f(X), centred(before))
    assert torch.equal(X, before)

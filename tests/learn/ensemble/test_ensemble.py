"""An ensemble's members train as they would alone: same weights, same order, same optimiser, to rounding."""

import pytest
import torch
from torch import nn

from sumformer.errors import InputError, ShapeError
from sumformer.learn.ensemble import Member, Recipe, SumformerEnsemble, train

MEMBERS = (
    Member(2, 3, 2, seed=0, data=0, learning_rate=1e-3),
    Member(2, 3, 2, seed=1, data=0, learning_rate=3e-3),
    Member(1, 5, 1, seed=2, data=1, learning_rate=1e-2),
    Member(2, 1, 2, seed=3, data=0),
)


def data(N, seed=0, n=3):
    """Two data sets, the second with d = 1, padded."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(2, N, n, 2, generator=generator, dtype=torch.float64)
    X[1, ..., 1] = 0
    Y = X * (1 + X.sum(2, keepdim=True)) ** 2
    return X, Y


def alone(ensemble, member, X, Y, recipe):
    """The same training by torch's own optimiser and a plain loop."""
    model = ensemble.start(member).double()
    X, Y = X[member.data, ..., : member.d], Y[member.data, ..., : member.d_out]
    if recipe.standardise:
        X = (X - X.mean((0, 1))) / X.std((0, 1))
        Y = (Y - Y.mean((0, 1))) / Y.std((0, 1))
    optimiser = torch.optim.AdamW(model.parameters(), lr=member.learning_rate, weight_decay=recipe.weight_decay)
    per_epoch = len(X) // recipe.batch
    for epoch in range(1, recipe.epochs + 1):
        generator = torch.Generator().manual_seed(member.seed * 1_000_003 + epoch)
        order = torch.randperm(len(X), generator=generator)
        for k in range(per_epoch):
            step = torch.tensor((epoch - 1) * per_epoch + k)
            for group in optimiser.param_groups:
                group["lr"] = member.learning_rate * float(recipe.factor(step, recipe.epochs * per_epoch))
            rows = order[k * recipe.batch : (k + 1) * recipe.batch]
            optimiser.zero_grad()
            nn.functional.mse_loss(model(X[rows]), Y[rows]).backward()
            optimiser.step()
    return model


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("recipe", [Recipe(3, 8), Recipe(3, 8, 0.1, schedule="one-cycle", standardise=True)])
def test_members_train_as_they_would_alone(mean, recipe):
    ensemble = SumformerEnsemble(MEMBERS, hidden=7, depth=2, activation="silu", mean=mean).double()
    X, Y = data(40)
    train(ensemble, (X, Y), data(8, 1), recipe)
    for m, member in enumerate(MEMBERS):
        wanted = alone(ensemble, member, X, Y, recipe)
        got = ensemble.member(m).double()
        for a, b in zip(wanted.parameters(), got.parameters(), strict=True):
            # `member` returns float32
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_polynomial_members_train_as_they_would_alone():
    members = (Member(2, 9, 2, seed=0), Member(2, 9, 2, seed=5, data=1))
    ensemble = SumformerEnsemble(members, hidden=6, depth=3, degree=3).double()
    X, Y = data(32)
    train(ensemble, (X, Y), data(8, 1), Recipe(2, 8))
    for m, member in enumerate(members):
        wanted = alone(ensemble, member, X, Y, Recipe(2, 8))
        for a, b in zip(wanted.parameters(), ensemble.member(m).parameters(), strict=True):
            torch.testing.assert_close(a.float(), b, rtol=1e-5, atol=1e-6)


def test_padding_stays_zero_and_members_do_not_touch_each_other():
    X, Y = data(24)
    together = SumformerEnsemble(MEMBERS, hidden=5, depth=2).double()
    before = together.flat.detach().clone()
    train(together, (X, Y), data(8, 1), Recipe(2, 8))
    assert torch.equal(together.flat[before == 0], before[before == 0])
    assert not torch.equal(together.flat, before)
    single = SumformerEnsemble(MEMBERS[:1], hidden=5, depth=2).double()
    train(single, (X, Y), data(8, 1), Recipe(2, 8))
    for a, b in zip(single.member(0).parameters(), together.member(0).parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


def test_history_reports_relative_errors_that_fall():
    X, Y = data(200)
    ensemble = SumformerEnsemble(MEMBERS, hidden=20, depth=2, activation="silu")
    seen = []
    recipe = Recipe(12, 20, schedule="one-cycle", standardise=True, validate_every=5)
    history = train(ensemble, (X, Y), data(50, 1), recipe, lambda *args: seen.append(args))
    assert history.epochs == (0, 5, 10, 12)
    assert [args[0] for args in seen] == [5, 10, 12]
    assert history.steps == 120
    assert history.errors.shape == (4, 4)
    assert bool((history.best < history.errors[0]).all())
    assert float(history.best[2]) < 0.25 * float(history.errors[0, 2])  # the largest learning rate, one coordinate
    X_val, Y_val = (part[0].float() for part in data(50, 1))
    shift, scale = X[0].mean((0, 1)).float(), X[0].std((0, 1)).float()
    y_shift, y_scale = Y[0].mean((0, 1)).float(), Y[0].std((0, 1)).float()
    with torch.no_grad():
        Z = ensemble.member(0)((X_val - shift) / scale) * y_scale + y_shift
    error = (Z - Y_val).norm() / Y_val.norm()
    assert float(error) == pytest.approx(float(history.last[0]), rel=1e-4)


def test_bad_input_is_refused():
    with pytest.raises(InputError):
        SumformerEnsemble([])
    with pytest.raises(InputError):
        SumformerEnsemble([Member(2, 3, 1)], degree=3)  # C(5, 2) − 1 = 9 monomials
    with pytest.raises(InputError):
        Recipe(0)
    with pytest.raises(ShapeError):
        SumformerEnsemble(MEMBERS)(torch.zeros(2, 3, 3, 2))
    with pytest.raises(ShapeError):
        train(SumformerEnsemble(MEMBERS), (torch.zeros(2, 9, 3, 5), torch.zeros(2, 9, 3, 2)), data(4), Recipe(1))
    with pytest.raises(InputError, match="learning rate"):
        Member(2, 3, 2, learning_rate=float("nan"))
    ensemble, (X, Y) = SumformerEnsemble(MEMBERS), data(4)
    with pytest.raises(ShapeError, match="at least one"):
        train(ensemble, (X[:, :0], Y[:, :0]), (X, Y), Recipe(1))
    with pytest.raises(InputError, match="finite"):
        train(ensemble, (X / 0, Y), (X, Y), Recipe(1))
    with pytest.raises(InputError, match="data sets 0 to 0"):
        train(ensemble, (X[:1], Y[:1]), (X, Y), Recipe(1))

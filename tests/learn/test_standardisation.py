"""(x − μ)/σ: fitted on real tokens, undone, the same after saving."""

from __future__ import annotations

import json

import torch

from sumformer.learn import sets_from_arrays
from sumformer.learn.standardisation import Affine, Standardisation


def test_real_tokens_have_mean_0_and_deviation_1_and_padding_stays_0():
    generator = torch.Generator().manual_seed(0)
    x = 1e6 + 3 * torch.randn(50, 7, 2, generator=generator, dtype=torch.float64)
    x[..., 1] = 5.0  # a constant coordinate
    lengths = torch.randint(1, 8, (50,), generator=generator)
    sets = sets_from_arrays(x.numpy(), x.numpy(), lengths=lengths.numpy())
    fitted = Standardisation.fit(sets)
    inputs = fitted.inputs(sets, torch.float32)
    real = inputs[sets.keep]
    assert real[:, 0].mean().abs() < 1e-5
    assert (real[:, 0].std(correction=0) - 1).abs() < 1e-5
    assert (real[:, 1] == 0).all()
    assert (inputs[~sets.keep] == 0).all()
    assert torch.allclose(fitted.y.undo(fitted.y.apply(sets.y)), sets.y, rtol=1e-12)
    assert Standardisation.from_data(json.loads(json.dumps(fitted.to_data()))) == fitted


def test_identity_changes_nothing():
    values = torch.randn(3, 2)
    assert torch.equal(Affine.identity(2).apply(values), values)

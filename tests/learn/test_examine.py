"""A fit on sets it has not seen, whatever labels they have; and what it does not look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sumformer.errors import InputError
from sumformer.learn import Settings, examine, fit, sets_from_arrays
from sumformer.learn.evaluation import _interval

QUICK = Settings(hidden=16, depth=1, latent=8, epochs=2, batch_size=16, seed=1)
X = np.random.default_rng(0).normal(size=(120, 5, 2))
TOTAL = X.sum((1, 2))
LABELS = np.where(TOTAL > 1.5, "c", np.where(TOTAL < -1.5, "a", "b"))


@pytest.fixture(scope="module")
def classifier():
    return fit(sets_from_arrays(X, LABELS), QUICK)


def test_labels_are_compared_as_labels(classifier):
    for some, labels in ((LABELS != "a", LABELS), (LABELS != "a", np.where(LABELS == "b", "b", "new"))):
        report = examine(classifier, sets_from_arrays(X[some], labels[some])).report
        right = classifier.predict(sets_from_arrays(X[some])) == labels[some]
        assert report["accuracy"] == pytest.approx(right.mean())
        assert 0 <= report["baseline"] <= 1


def test_targets_of_another_kind_are_refused(classifier):
    for y in (TOTAL, np.broadcast_to(LABELS[:, None], (120, 5))):
        with pytest.raises(InputError, match="the network is for tokens of width 2 and classification"):
            examine(classifier, sets_from_arrays(X, y))
    with pytest.raises(InputError, match="the network is for tokens of width 2"):
        examine(classifier, sets_from_arrays(X[..., :1], LABELS))


def test_a_coordinate_that_never_changed_is_not_looked_at():
    x = X.copy()
    x[..., 1] = 0.139
    fitted = fit(sets_from_arrays(x, x[..., 0].sum(1)), QUICK)
    assert fitted.standardisation.unseen == [1]
    before = fitted.predict(sets_from_arrays(x))
    x[..., 1] = 1e6
    assert (fitted.predict(sets_from_arrays(x)) == before).all()


@pytest.mark.parametrize("scale", [1e160, 1e-170])
def test_the_scale_of_the_data_does_not_matter(scale):
    """A power of two away, to the last bit; so of numbers whose squares are beyond float64."""
    far = 2.0 ** round(np.log2(scale))
    fits = [fit(sets_from_arrays(X * s, TOTAL * s), QUICK) for s in (1.0, far)]
    assert fits[0].history == fits[1].history
    reports = [examine(f, sets_from_arrays(X * s, TOTAL * s)).report for f, s in zip(fits, (1.0, far), strict=True)]
    assert reports[0]["error"] == reports[1]["error"]
    assert reports[1]["rmse"] == [v * far for v in reports[0]["rmse"]]


def test_numbers_at_the_end_of_the_range_are_refused():
    with pytest.raises(InputError, match="near the end of float64's range"):
        fit(sets_from_arrays(X * 4e307, TOTAL), QUICK)


def test_a_set_without_tokens_has_no_prediction(classifier):
    with pytest.raises(InputError, match="set 0 has no tokens"):
        classifier.predict(sets_from_arrays([np.zeros((0, 2)), np.ones((2, 2))]))


def test_one_long_set_costs_itself_alone(classifier, monkeypatch):
    """Batches are cut to their own longest set, in training and in predictions, which stay what they were."""
    seen = []
    sets = sets_from_arrays([*X[:40], np.ones((1000, 2))], LABELS[:41])
    forward = type(classifier.network).forward

    def watched(self, x, *rest, **more):
        seen.append(x.shape[1])
        return forward(self, x, *rest, **more)

    monkeypatch.setattr(type(classifier.network), "forward", watched)
    fit(sets, QUICK)
    assert min(seen) == 16
    assert max(seen) == 1000
    assert seen.count(1000) <= 4  # twice a training step, or as often validated
    alone = classifier.predict(sets_from_arrays(X[:40]))
    assert (classifier.predict(sets)[:40] == alone).all()


def test_intervals_of_many_sets_take_little():
    errors = torch.rand(50_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    low, high = _interval(errors, torch.ones_like(errors), square=False, wilson=False)
    spread = 1.96 * float(errors.std()) / 50_000**0.5
    assert low == pytest.approx(0.5 - spread, abs=1.5 * spread)
    assert high - low == pytest.approx(2 * spread, rel=0.15)

"""The estimators: scikit-learn's own checks, and sets of tokens through clone, pipeline and grid search.

All checks that apply are passed. Two are skipped by scikit-learn itself where pandas, or SciPy's array-API switch, is
not there. The checks feed (N, d), which is read as sets of one token.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from sumformer.interop.scikit_learn import SumformerClassifier, SumformerRegressor

QUICK = {"hidden": 8, "depth": 1, "latent": 4, "epochs": 5, "random_state": 0}
MAY_SKIP = {"check_array_api_input", "check_regressor_data_not_an_array", "check_classifier_data_not_an_array"}
RNG = np.random.default_rng(0)
SETS = [RNG.normal(size=(int(k), 2)) for k in RNG.integers(1, 6, size=60)]
SUMS = np.array([a.sum() for a in SETS])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [SumformerRegressor, SumformerClassifier])
def test_the_estimator_checks_pass(estimator):
    made = estimator(hidden=16, depth=1, latent=8, epochs=30, batch_size=16, learning_rate=0.01, random_state=0)
    results = check_estimator(made, on_skip=None, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= MAY_SKIP
    assert sum(r["status"] == "passed" for r in results) >= 50


def padded(sets):
    out = np.full((len(sets), max(map(len, sets)), 2), np.nan)
    for i, tokens in enumerate(sets):
        out[i, : len(tokens)] = tokens
    return out


def test_lists_and_padded_arrays_are_the_same_sets():
    first = SumformerRegressor(**QUICK).fit(SETS, SUMS).predict(SETS)
    second = SumformerRegressor(**QUICK).fit(padded(SETS), SUMS).predict(padded(SETS))
    assert first.shape == SUMS.shape
    assert (first == second).all()


def test_targets_of_tokens_come_back_as_a_list_and_score_over_real_tokens():
    y = [a[:, 0] + a.mean() for a in SETS]
    model = SumformerRegressor(**(QUICK | {"epochs": 60, "learning_rate": 0.02})).fit(SETS, y)
    out = model.predict(SETS)
    assert [len(a) for a in out] == [len(a) for a in SETS]
    truth, found = np.concatenate(y), np.concatenate(out)
    wanted = 1 - ((truth - found) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    assert model.score(SETS, y) == pytest.approx(wanted)
    assert wanted > 0.5
    y_padded = np.zeros(padded(SETS).shape[:2])
    for i, a in enumerate(y):
        y_padded[i, : len(a)] = a
    assert model.score(padded(SETS), y_padded) == pytest.approx(wanted)


def test_a_classifier_has_probabilities_of_its_classes():
    labels = np.where(SUMS > 0, "plus", "minus")
    model = SumformerClassifier(**(QUICK | {"epochs": 40, "learning_rate": 0.02})).fit(SETS, labels)
    assert model.classes_.tolist() == ["minus", "plus"]
    p = model.predict_proba(SETS)
    assert p.shape == (60, 2)
    assert np.allclose(p.sum(1), 1)
    assert (model.classes_[p.argmax(1)] == model.predict(SETS)).all()
    assert model.score(SETS, labels) > 0.8
    of_tokens = SumformerClassifier(**QUICK).fit(SETS, [np.where(a[:, 0] > 0, "up", "down") for a in SETS])
    assert [len(a) for a in of_tokens.predict_proba(SETS)] == [len(a) for a in SETS]


class Centred(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        return [a - a.mean(0) for a in X]


def test_clone_pipeline_and_grid_search():
    model = SumformerRegressor(**QUICK)
    again = clone(model).set_params(latent=5)
    assert again.get_params()["latent"] == 5
    assert model.latent == 4
    make_pipeline(Centred(), model).fit(SETS, SUMS).predict(SETS)
    grid = {"architecture": ["deep-sets", "mlp-sumformer"], "latent": np.array([2])}
    search = GridSearchCV(SumformerRegressor(**QUICK), grid, cv=KFold(2)).fit(SETS, SUMS)
    assert search.best_params_["architecture"] in grid["architecture"]
    assert search.predict(SETS).shape == SUMS.shape


def test_a_seed_gives_identical_runs_and_another_width_is_refused():
    a, b = (SumformerRegressor(**QUICK).fit(SETS, SUMS).predict(SETS) for _ in range(2))
    assert (a == b).all()
    model = SumformerRegressor(**QUICK).fit(SETS, SUMS)
    with pytest.raises(ValueError, match="2 features"):
        model.predict([np.zeros((3, 4))])
    with pytest.raises(ValueError, match="60 sets"):
        model.fit(SETS, SUMS[:10])

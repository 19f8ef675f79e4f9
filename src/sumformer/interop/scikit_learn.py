"""`SumformerRegressor` and `SumformerClassifier`: X ↦ ŷ in scikit-learn's manner, over sets of tokens.

X is an array (N, n, d), whose tokens of nothing but NaN are padding; or a list of N arrays (n_i, d); or (N, d), sets of
one token. y has a target for each set, or for each token: (N, n), (N, n, k), or a list of N arrays (n_i, …).

Both pass every check of `check_estimator` that applies, on sets of one token, as its data are (N, d). Two skip
themselves: those of pandas and of array-API inputs, where pandas is not installed or SciPy's array-API switch is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from sumformer.errors import InputError, MissingDependencyError
from sumformer.learn.arrays import sets_from_arrays
from sumformer.learn.fitting import fit
from sumformer.learn.sets import Sets
from sumformer.learn.settings import Settings

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise MissingDependencyError("scikit-learn", "SumformerRegressor and SumformerClassifier", "sklearn") from None

Array = np.ndarray[Any, np.dtype[Any]]


class _SetEstimator(BaseEstimator):  # type: ignore[misc]
    """What both share. Arguments are those of `Settings`; None is derived from the data."""

    _task: str

    def __init__(
        self,
        architecture: str = "mlp-sumformer",
        *,
        hidden: int = 64,
        depth: int = 2,
        latent: int = 32,
        epochs: int | None = None,
        batch_size: int = 32,
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        per: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.architecture = architecture
        self.hidden, self.depth, self.latent = hidden, depth, latent
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.weight_decay, self.patience, self.validation_fraction = weight_decay, patience, validation_fraction
        self.per, self.random_state = per, random_state

    def _settings(self, count: int) -> Settings:
        held = self.validation_fraction if count >= 10 else 0.0  # with fewer sets every one is needed
        names = ("architecture", "hidden", "depth", "latent", "epochs", "batch_size", "learning_rate", "patience")
        values = {name: getattr(self, name) for name in names}
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Settings(**values, weight_decay=self.weight_decay, validation=held, test=0.0, seed=seed)

    def fit(self, X: Any, y: Any) -> Self:
        """Train on the sets X with targets y."""
        x, keep = self._inputs(X, reset=True)
        values = self._targets(y, flat=not _is_sets(X))
        if len(x) != len(values):
            raise ValueError(f"X has {len(x)} sets, y has targets for {len(values)}: inconsistent numbers of samples")
        sets = sets_from_arrays(x, values, mask=keep, per=self.per, task=self._task, where=type(self).__name__)
        self.fitted_ = fit(sets, self._settings(len(sets)))
        self.fitted_.network.double()  # a set's prediction is the same to 1e-7 in whatever batch it stands
        self.n_iter_ = len(self.fitted_.history) - 1
        return self

    def predict(self, X: Any) -> Any:
        """Predictions in the form of the targets of `fit`; for tokens of a list of sets, a list."""
        check_is_fitted(self, "fitted_")
        return self._for_each(X, self.fitted_.predict)

    def _for_each(self, X: Any, function: Callable[[Sets], Array]) -> Any:
        x, keep = self._inputs(X, reset=False)
        out = function(sets_from_arrays(x, mask=keep))
        ragged = isinstance(X, list | tuple) and self.fitted_.task.per_token
        return [row[real] for row, real in zip(out, keep, strict=True)] if ragged else out

    def _inputs(self, X: Any, reset: bool) -> tuple[Any, Any]:
        if not _is_sets(X):
            flat = validate_data(self, X, reset=reset, dtype="numeric")
            return flat[:, None, :], np.ones((len(flat), 1), dtype=bool)
        sets = _padded(X)
        if reset:
            self.n_features_in_ = sets.d
        elif sets.d != self.n_features_in_:
            name = type(self).__name__
            raise ValueError(
                f"X has {sets.d} features, but {name} is expecting {self.n_features_in_} features as input"
            )
        return sets.x.numpy(), sets.keep.numpy()

    def _targets(self, y: Any, flat: bool) -> Any:
        raise NotImplementedError

    def _pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        """True and predicted targets, tokens of padding left out, one row for each that counts."""
        got = self.predict(X)
        if not self.fitted_.task.per_token:
            return np.asarray(y), np.asarray(got)
        keep = self._inputs(X, reset=False)[1]
        lengths = keep.sum(1)
        truth = [
            np.asarray(row)[real if len(row) == len(real) else slice(k)]
            for row, real, k in zip(y, keep, lengths, strict=True)
        ]
        found = got if isinstance(got, list) else [row[real] for row, real in zip(got, keep, strict=True)]
        return np.concatenate(truth), np.concatenate(found)


class SumformerRegressor(RegressorMixin, _SetEstimator):  # type: ignore[misc]
    """Numbers for each set or each token. `score` is R² over all sets, or over all real tokens."""

    _task = "regression"

    def _targets(self, y: Any, flat: bool) -> Any:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if not flat:
            return y if isinstance(y, list | tuple) else _numbers(y)
        values = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        return column_or_1d(values, warn=True) if values.ndim == 2 and values.shape[1] == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²."""
        truth, found = self._pairs(X, y)
        return float(r2_score(truth, found, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        return tags


class SumformerClassifier(ClassifierMixin, _SetEstimator):  # type: ignore[misc]
    """A label for each set or each token. `score` is the share of right ones."""

    _task = "classification"

    def _targets(self, y: Any, flat: bool) -> Any:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if not flat:
            return y
        values = column_or_1d(y, warn=True)
        check_classification_targets(values)
        return values

    def fit(self, X: Any, y: Any) -> Self:
        super().fit(X, y)
        self.classes_ = np.asarray(self.fitted_.task.classes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of `classes_`, for each set or each token; for tokens of a list of sets, a list."""
        check_is_fitted(self, "fitted_")
        return self._for_each(X, self.fitted_.probabilities)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right labels."""
        truth, found = self._pairs(X, y)
        return float(accuracy_score(truth, found, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _is_sets(X: Any) -> bool:
    """Whether X is a list of arrays or an array (N, n, d), not scikit-learn's (N, d)."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(np.ndim(item) == 2 for item in X)
    return getattr(X, "ndim", 2) == 3


def _numbers(y: Any) -> Array:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("SumformerRegressor: expected targets that are numbers") from None


def _padded(X: Any) -> Sets:
    if isinstance(X, list | tuple):
        return sets_from_arrays([np.asarray(item) for item in X])
    array = np.asarray(X, dtype=np.float64)
    padding = np.isnan(array).all(-1)
    return sets_from_arrays(array, mask=~padding)

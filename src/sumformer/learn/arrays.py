"""Arrays or lists of arrays → `Sets`: shapes, masks and targets checked, what is open settled by a stated rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sumformer.errors import InputError, ShapeError
from sumformer.learn.sets import Sets, Task

MOST_CLASSES = 100
Array = np.ndarray[Any, np.dtype[Any]]


def sets_from_arrays(
    x: Any,
    y: Any = None,
    *,
    mask: Any = None,
    lengths: Any = None,
    per: str | None = None,
    task: str | None = None,
    where: str = "data",
) -> Sets:
    """x (N, n, d) or a list of (n_i, d); y (N, …) or, for each token, a list of (n_i, …); `mask` 1 = a real token.

    `per` ("token", "set") and `task` ("regression", "classification") settle what the arrays leave open: y of shape
    (N, n) is one number for each token, and integers with at most 100 different values are classes.
    """
    for name, value, allowed in (("per", per, ("token", "set")), ("task", task, ("regression", "classification"))):
        if value not in (None, *allowed):
            raise InputError(f"{where}: expected {name} to be {' or '.join(allowed)}, got {value!r}")
    ragged = isinstance(x, list | tuple) and any(np.ndim(item) == 2 for item in x)
    tokens, keep = _padded(x, where) if ragged else _checked(x, mask, lengths, where)
    if ragged and (mask is not None or lengths is not None):
        raise InputError(f"{where}: a list of arrays has its lengths already; leave out mask and lengths")
    if y is None:
        return Sets(tokens, keep)
    return _with_targets(tokens, keep, y, per, task, where)


def _padded(x: Sequence[Any], where: str) -> tuple[Tensor, Tensor]:
    arrays = [np.asarray(item) for item in x]
    width = next(a.shape[1] for a in arrays if a.ndim == 2)
    wrong = [i for i, a in enumerate(arrays) if a.ndim != 2 or a.shape[1] != width]
    if wrong:
        i = wrong[0]
        raise ShapeError(f"{where}: x[{i}]", f"tokens of shape (n, {width})", arrays[i].shape)
    n = max(a.shape[0] for a in arrays)
    tokens, keep = np.zeros((len(arrays), n, width)), np.zeros((len(arrays), n), dtype=bool)
    for i, a in enumerate(arrays):
        tokens[i, : len(a)], keep[i, : len(a)] = _numbers(a, f"{where}: x[{i}]"), True
    return _finite(tokens, keep, where)


def _checked(x: Any, mask: Any, lengths: Any, where: str) -> tuple[Tensor, Tensor]:
    tokens = _numbers(x, f"{where}: x")
    if tokens.ndim != 3 or 0 in tokens.shape:
        raise ShapeError(f"{where}: x", "sets of tokens of shape (N, n, d), none of them 0", tokens.shape)
    count, n = tokens.shape[:2]
    keep = np.ones((count, n), dtype=bool)
    if mask is not None:
        given = np.asarray(mask)
        if given.shape != (count, n):
            raise ShapeError(f"{where}: mask", f"shape (N, n) = {(count, n)}, 1 for a real token", given.shape)
        if not np.isin(given, (0, 1)).all():
            raise InputError(f"{where}: mask: expected 1 for a real token and 0 for padding, got other values")
        keep = given != 0
    if lengths is not None:
        given = np.asarray(lengths)
        if given.shape != (count,) or given.dtype.kind not in "iu":
            raise ShapeError(f"{where}: lengths", f"{count} integers from 0 to {n}", f"{given.dtype} {given.shape}")
        wrong = np.flatnonzero((given < 0) | (given > n))
        if len(wrong):
            i = int(wrong[0])
            raise InputError(f"{where}: lengths[{i}]: expected an integer from 0 to n = {n}, got {given[i]}")
        keep = keep & (np.arange(n) < given[:, None])
    return _finite(tokens, keep, where)


def _numbers(values: Any, where: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{where}: expected an array of numbers, got rows of different lengths") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{where}: expected real numbers, got dtype {array.dtype}")
    return array.astype(np.float64)


def _finite(tokens: Array, keep: Array, where: str) -> tuple[Tensor, Tensor]:
    wrong = np.argwhere(~np.isfinite(tokens).all(-1) & keep)
    if len(wrong):
        i, j = wrong[0]
        raise InputError(f"{where}: token {j} of set {i} is not finite: {tokens[i, j].tolist()}")
    tokens = np.where(keep[..., None], tokens, 0.0)
    return torch.from_numpy(tokens), torch.from_numpy(keep)


def _with_targets(x: Tensor, keep: Tensor, y: Any, per: str | None, task: str | None, where: str) -> Sets:
    count, n, d = x.shape
    if isinstance(y, list | tuple) and len(y) == count and any(np.ndim(item) > 0 for item in y):
        y, per = _padded_targets(y, keep, per, where)
    values = _plain(y, where)
    if values.ndim == 0 or values.shape[0] != count:
        raise ShapeError(f"{where}: y", f"one target for each of the {count} sets (or its tokens)", values.shape)
    classes = _is_classification(values, task, where)
    per_token = values.ndim >= 2 and values.shape[1] == n and (values.ndim == 3 or not (n == 1 and per is None))
    if per is not None:
        per_token = per == "token"
    lead = (count, n) if per_token else (count,)
    if values.shape[: len(lead)] != lead or values.ndim > len(lead) + 1:
        shapes = f"(N, n) or (N, n, k) with N = {count}, n = {n}" if per_token else f"(N,) or (N, k) with N = {count}"
        raise ShapeError(
            f"{where}: y", f"one target for each {'token' if per_token else 'set'}: {shapes}", values.shape
        )
    if values.ndim == len(lead) + 1 and values.shape[-1] == 0:
        raise ShapeError(f"{where}: y", "at least one output", values.shape)
    real = keep if per_token else torch.ones(count, dtype=torch.bool)
    flat = values.ndim == len(lead)
    if classes:
        return _classes(x, keep, values, lead, real, flat, where)
    numbers = _numbers(values, f"{where}: y").reshape(*lead, -1)
    wrong = np.argwhere(~np.isfinite(numbers).all(-1) & real.numpy())
    if len(wrong):
        raise InputError(f"{where}: y{wrong[0].tolist()} is not finite")
    targets = torch.where(real.unsqueeze(-1), torch.from_numpy(numbers), 0.0)
    return Sets(x, keep, targets, Task(d, numbers.shape[-1], per_token, None, flat))


def _plain(y: Any, where: str) -> Array:
    """Text, numbers and truth values that came as objects, as what they are."""
    try:
        values = np.asarray(y)
    except ValueError:
        raise InputError(f"{where}: y: expected an array, got rows of different lengths") from None
    if values.dtype != object:
        return values
    for kinds, kind in (
        ((str,), str),
        ((bool, np.bool_), bool),
        ((int, np.integer), int),
        ((int, float, np.number), float),
    ):
        if all(isinstance(v, kinds) for v in values.flat):
            return values.astype(kind)
    first = values.flat[0]
    odd = next((v for v in values.flat if type(v) is not type(first)), first)
    raise InputError(f"{where}: y: expected numbers, or labels of one kind, got {first!r} and {odd!r}")


def _padded_targets(y: Sequence[Any], keep: Tensor, per: str | None, where: str) -> tuple[Any, str | None]:
    """A list of arrays: targets of the real tokens go to their places; those that do not fit tokens belong to sets."""
    arrays = [np.asarray(item) for item in y]
    lengths = [int(k) for k in keep.sum(1)]
    fits = [a.ndim >= 1 and len(a) == k for a, k in zip(arrays, lengths, strict=True)]
    alike = len({a.shape[1:] for a in arrays}) == 1
    if per == "set" or not (all(fits) and alike):
        if len({a.shape for a in arrays}) == 1:
            return np.stack(arrays), "set" if False in fits else per
        i = fits.index(False) if False in fits else 0
        raise ShapeError(f"{where}: y[{i}]", f"a target for each of its {lengths[i]} tokens", arrays[i].shape)
    out = np.zeros((*keep.shape, *arrays[0].shape[1:]), dtype=np.result_type(*arrays))
    for i, (a, real) in enumerate(zip(arrays, keep.numpy(), strict=True)):
        if len(a):
            out[i], out[i, real] = a[:1], a  # padding repeats a label, so that it adds none
    return out, per


def _is_classification(values: Array, task: str | None, where: str) -> bool:
    if values.dtype.kind in "USOb" and task == "regression":
        raise InputError(f"{where}: y holds labels ({values.dtype}), which regression cannot use")
    if task is not None:
        return task == "classification"
    if values.dtype.kind in "USb":
        return True
    return values.dtype.kind in "iu" and len(np.unique(values)) <= MOST_CLASSES


def _classes(
    x: Tensor, keep: Tensor, values: Array, lead: tuple[int, ...], real: Tensor, flat: bool, where: str
) -> Sets:
    if values.size != int(np.prod(lead)):
        raise ShapeError(f"{where}: y", f"one label each: shape {lead}", values.shape)
    labels = values.reshape(lead)
    if labels.dtype.kind == "f":
        if not (labels[real.numpy()] == np.round(labels[real.numpy()])).all():
            raise InputError(f"{where}: y holds numbers that are no whole numbers; classification needs labels")
        labels = np.where(real.numpy(), labels, labels[real.numpy()].flat[0]).astype(np.int64)
    known = np.unique(labels[real.numpy()])
    if len(known) < 2:
        raise InputError(f"{where}: y has one class only ({known.tolist()}); there is nothing to tell apart")
    places = np.searchsorted(known, np.where(real.numpy(), labels, known[0]))
    task = Task(x.shape[2], 1, len(lead) == 2, tuple(known.tolist()), flat)
    return Sets(x, keep, torch.from_numpy(places.astype(np.int64)), task)

"""What arrays and lists of them mean as sets, and which are refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.errors import InputError, ShapeError
from sumformer.learn import sets_from_arrays


def test_vectors_that_cannot_belong_to_tokens_belong_to_sets():
    """Two numbers of tokens, three numbers each: not even where the longest set has three tokens."""
    sets = sets_from_arrays([np.ones((2, 2)), np.ones((3, 2))], [np.array([1.0, 2, 3]), np.array([4.0, 5, 6])])
    assert not sets.task.per_token
    assert sets.y.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("labels", "kind"), [(["a", "b", "a"], "U"), ([True, False, True], "b"), ([1, 2, 1], "i"), ([1.5, 2, 1], None)]
)
def test_objects_are_what_they_hold(labels, kind):
    task = sets_from_arrays(np.ones((3, 2, 1)), np.array(labels, dtype=object)).task
    assert (task.classes is None) == (kind is None)
    if kind is not None:
        assert np.asarray(task.classes).dtype.kind == kind


@pytest.mark.parametrize("labels", [["a", None, "b"], ["a", 1, "b"], [{}, {}, {}]])
def test_objects_of_several_kinds_are_named(labels):
    with pytest.raises(InputError, match="labels of one kind"):
        sets_from_arrays(np.ones((3, 2, 1)), np.array(labels, dtype=object), task="classification")


@pytest.mark.parametrize("first", [np.zeros(4), []])
def test_the_item_of_another_shape_is_named(first):
    with pytest.raises(ShapeError, match=r"x\[0\]: expected tokens of shape \(n, 4\)"):
        sets_from_arrays([first, np.zeros((3, 4))])


def test_an_empty_set_among_others_has_no_targets():
    sets = sets_from_arrays([np.zeros((0, 4)), np.zeros((3, 4))], [np.zeros(0), np.ones(3)])
    assert sets.lengths.tolist() == [0, 3]
    assert sets.y[1].flatten().tolist() == [1, 1, 1]

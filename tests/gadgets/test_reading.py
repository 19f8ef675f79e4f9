"""Affine readings of named places: sums and multiples keep no range, and gadgets refuse to guess one."""

from __future__ import annotations

import pytest

from sumformer.errors import InputError
from sumformer.gadgets.elementary import elementary
from sumformer.gadgets.identity import identity
from sumformer.gadgets.look_up import look_up
from sumformer.gadgets.product import product
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.square import square

A, B = Reading({"a": 1.0}), Reading({"b": 1.0})


def test_a_reading_needs_its_range():
    unbounded = [
        lambda: product(A, B.within(0.0, 1.0), "out", 1e-2, "depth"),
        lambda: square(A + 1.0, "out", 1e-2, "depth"),
        lambda: look_up(A, [0.5], [0.0, 1.0], 0.01, "out"),
        lambda: elementary("tanh", A.within(0.0, 1.0) * 2.0, "out", 1e-2),  # arithmetic does not guess a range
        lambda: elementary("tanh", A, "out", 1e-2, realisation="deep"),
        lambda: identity(A, {"out": 1.0}),
    ]
    for build in unbounded:
        with pytest.raises(InputError, match="expected a reading with a"):
            build()


def test_readings_are_affine_functions():
    t = (A * 3.0 - B / 2.0 + 1.0) + (B / 2.0 - 0.25)
    assert dict(t.weights) == {"a": 3.0}
    assert t.offset == 0.75
    narrow = t.within(-1.0, 3.0)
    assert (narrow.centre, narrow.radius, narrow.magnitude, narrow.known_size) == (1.0, 2.0, 3.0, 3.75)
    assert (A + B).within(0.0, 1.0).known_size is None

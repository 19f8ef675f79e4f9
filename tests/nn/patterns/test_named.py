"""Patterns by name, as on the command line and in `construct(pattern=…)`."""

from __future__ import annotations

import pytest

from sumformer.errors import InputError
from sumformer.nn import patterns as sparse
from sumformer.nn.patterns.named import named


def test_patterns_by_name():
    assert named("window:2") == sparse.Window(2)
    assert named("big-bird:1,1,2") == sparse.BigBird(1, 1, 2)
    assert named("star") == sparse.Star()


@pytest.mark.parametrize("text", ["window", "window:a", "window:1,2", "nothing:1", ""])
def test_what_is_none(text):
    with pytest.raises(InputError, match=f"pattern '{text}': expected"):
        named(text)

"""A refusal is an `InputError` that says what was expected and what came."""

from __future__ import annotations

import pytest

from sumformer.errors import InputError


def refused(error, call, *words):
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, InputError)
    for word in ("expected", "got", *words):
        assert word in str(caught.value)

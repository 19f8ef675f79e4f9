"""What the proof does not follow is refused by the construction, with a reason; what is built verifies."""

from __future__ import annotations

from pathlib import Path

import pytest

from sumformer.certificates.checker import check
from sumformer.errors import RefusedError
from sumformer.theorems.construction import construct


@pytest.mark.parametrize(
    ("source", "epsilon", "asked"),
    [
        ("x - mean(y)", 1e-101, {"architecture": "performer", "n": 3, "box": "0:1e-100", "route": "exact"}),
        ("x*mean(y)", 1e120, {"architecture": "transformer", "n": 2, "box": "1e60:2e60"}),
        ("max(x, mean(y))", 1e60, {"architecture": "transformer", "n": 2, "box": "1e60:2e60", "route": "grid"}),
    ],
)
def test_other_units_are_asked_for(source, epsilon, asked):
    with pytest.raises(RefusedError, match="other units"):
        construct(source, epsilon, **asked)


@pytest.mark.parametrize(
    ("source", "epsilon", "asked"),
    [
        ("x - mean(y)", 1e-76, {"architecture": "performer", "n": 3, "box": "0:1e-75"}),
        ("x - mean(y)", 1e-100, {"architecture": "performer", "n": 3, "box": "0:1e-100"}),  # by a look-up
        ("x*mean(y)", 1e80, {"architecture": "transformer", "n": 2, "box": "1e40:2e40"}),
        ("max(x, mean(y))", 1e59, {"architecture": "transformer", "n": 2, "box": "0:1e59", "route": "grid"}),
    ],
)
def test_large_and_small_numbers_verify(tmp_path: Path, source, epsilon, asked):
    construct(source, epsilon, **asked).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures

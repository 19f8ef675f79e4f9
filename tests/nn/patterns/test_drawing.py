from __future__ import annotations

import sys

import pytest

from sumformer.errors import MissingDependencyError
from sumformer.nn.patterns import Fixed, Star


def test_text():
    assert Star(1).draw(4).splitlines() == [
        "Star(w=1), n = 4: 14 connections",
        "■ ■ ■ ■",
        "■ ■ ■ ·",
        "■ ■ ■ ■",
        "■ · ■ ■",
    ]
    assert Fixed(2).draw(3, 1).splitlines()[1:] == ["■ ■ ■", "· ■ ■", "· ■ ■"]


def test_picture():
    pytest.importorskip("matplotlib")
    ax = Star(1).picture(8)
    assert ax.get_title() == "Star(w=1), n = 8"
    assert ax.images[0].get_array().shape == (8, 8)
    assert Star(1).picture(9, ax=ax) is ax


def test_picture_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="plots"):
        Star(1).picture()

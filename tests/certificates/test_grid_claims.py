"""Codes by their five names, whole numbers that are no truth values, and as many cells as can be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from tampered import Tampered

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.grid.tables import latent_dimension
from sumformer.errors import FileFormatError
from sumformer.nn.codes import CODES
from sumformer.theorems.construction import construct


def test_the_codes_are_those_that_can_be_built():
    assert all(latent_dimension(code, 3, 8) is not None for code in CODES)


@pytest.mark.parametrize("code", ["lanesinteger", "integerlanes", "lanes ", "integer n", "n+1", "lanes n+1 ", ""])
def test_other_codes_are_none(code):
    assert latent_dimension(code, 3, 8) is None


@pytest.mark.parametrize("change", [{"cells": [True]}, {"lipschitz": False}, {"cell_radius_over_half_side": True}])
def test_truth_values_are_no_numbers(tmp_path, change):
    construct("0*max(y)", 0.5, n=2, route="grid").save(tmp_path / "net")
    assert check(tmp_path / "net").verified
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    forged.edit("certificate", lambda c: c["constants"].update(change))
    assert not check(forged.folder).verified


def test_a_function_on_more_cells_than_a_code_is_made_for(tmp_path):
    def spread(X):
        return (X - X.mean(1, keepdim=True)).abs()

    f = sumformer.target(spread, n=2, d=6, lipschitz=1.0)
    construct(f, 1.0, options={"code": "integer"}).save(tmp_path / "net")
    forged, count = Tampered(tmp_path / "net", tmp_path / "forged"), 64

    def tables(tensors):
        for c in range(6):
            tensors[f"edges.{c}"] = np.arange(1, count) / count
            tensors[f"centres.{c}"] = (np.arange(count) + 0.5) / count

    forged.weights(tables).edit("config", lambda c: c.update(cells=[count] * 6))
    forged.edit("certificate", lambda c: c["constants"].update(cells=[count] * 6))
    with pytest.raises(FileFormatError, match="cells in all"):
        check(forged.folder)

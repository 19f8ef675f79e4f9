"""How deep sums are merged is part of what is claimed: more than was proved does not verify."""

from __future__ import annotations

import json

import pytest

import sumformer
from sumformer.certificates.certificate import CERTIFICATE_FILE
from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"


def with_merges(folder, merges):
    path = folder / CERTIFICATE_FILE
    data = json.loads(path.read_text())
    data["constants"]["merges"] = merges
    path.write_text(json.dumps(data))
    return check(folder)


@pytest.mark.parametrize(
    ("source", "dtype", "epsilon"),
    [
        (GAUSS, "float32", 1e-2),
        ("x*mean(y)", "float64", 1e-9),
        (GAUSS, "mixed", 1e-3),
        ("mean(abs(x-y))", "float64", 1e-2),
    ],
)
def test_the_claim_is_that_of_the_depth(source, dtype, epsilon, tmp_path):
    sumformer.construct(source, epsilon, d=1, dtype=dtype, merges=5000).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures
    fewer = with_merges(tmp_path, 10)
    assert fewer.verified
    assert fewer.bound < found.bound
    if epsilon != 1e-3 and "abs" not in source:  # where rounding is what counts
        assert not with_merges(tmp_path, 2**20).verified


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("x*mean(y)", {"merges": 1}),
        ("mean(abs(x-y))", {"route": "mesh"}),
        ("x*mean(y)", {"architecture": "transformer"}),
    ],
)
@pytest.mark.parametrize("merges", [-1, 2**20 + 1, 10**400, 0.5, 1.0, "2", "two", None, True, [1], float("nan")])
def test_depths_that_are_none_are_not_read(merges, source, options, tmp_path):
    """Of no network: what is claimed is said whatever else is wrong."""
    sumformer.construct(source, 0.1, n=3, **options).save(tmp_path)
    for read in (lambda: with_merges(tmp_path, merges), lambda: sumformer.load(tmp_path)):
        with pytest.raises(FileFormatError, match="merges"):
            read()


def test_routes_without_merges_do_not_claim_them(tmp_path):
    sumformer.construct("max(y)", 0.1, n=3, route="grid").save(tmp_path)
    assert not with_merges(tmp_path, 1).verified

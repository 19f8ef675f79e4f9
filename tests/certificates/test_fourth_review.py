"""False certificates and other faults found in a fourth review."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tampered import rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError, InputError, OutsideBoxError, RefusedError, ShapeError

# ---- d_p where p-th powers underflow


@pytest.mark.parametrize("architecture", ["deep-transformer", "sparse-transformer"])
def test_powers_that_underflow_are_not_zero(architecture: str, tmp_path: Path) -> None:
    """0.02²⁵⁰ is 0 in float64, and so was the bound of d_250(f, 0) = 0.019."""
    with pytest.raises(RefusedError, match="needs more cells"):
        sumformer.construct("0.02*x*mean(y)", 1e-3, n=2, architecture=architecture, p=250.0)
    sumformer.construct("0.02*x*mean(y)", 0.1, n=2, architecture=architecture, p=250.0).save(tmp_path)
    assert check(tmp_path).verified

    def claim(data: Any) -> None:
        data["total"] = data["terms"][0]["bound"] = 1e-3

    rewrite(tmp_path / "certificate.json", claim)
    found = check(sign(tmp_path))
    assert not found.verified
    assert found.bound >= 0.019


def test_powers_on_ramps_that_underflow_are_not_zero() -> None:
    """The ramps were as wide as a quarter of a cell, since 0.02²⁵⁰ = 0; on them N is off by up to 0.02."""
    with pytest.raises(RefusedError, match="ramps"):
        sumformer.construct(
            "0.02*x*mean(y)",
            1e-3,
            n=2,
            architecture="transformer",
            route="grid",
            p=250.0,
            options={"activation": "relu"},
        )


def test_volumes_that_underflow_are_not_zero(tmp_path: Path) -> None:
    """V = 1e-400 is 0 in float64, V^{1/10} is 1e-40: d_10(f, 0) is 1e-260, and 5e-324 was verified."""
    options: dict[str, Any] = {"n": 2, "box": "0:1e-200", "architecture": "deep-transformer", "p": 10.0}
    c = sumformer.construct("1e180*x*mean(y)", 1e-30, **options)
    assert c.certificate.total >= 1e-261
    c.save(tmp_path)
    assert check(tmp_path).verified


def test_more_cells_than_can_be_counted_are_refused() -> None:
    with pytest.raises(RefusedError, match="needs more cells"):
        sumformer.construct("x*mean(y)", 1e-12, n=2, architecture="deep-transformer", p=60.0)


# ---- "verified" of folders that cannot be loaded, or are loaded as something else


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"architecture": "deep-transformer"}, ("head", "d_model")),
        ({"architecture": "sparse-transformer"}, ("layers", "modules", 1, "attention", "d_head")),
        ({"architecture": "transformer", "route": "grid"}, ("blocks", "modules", 1, "feed_forward", "d_model")),
        ({"architecture": "transformer", "route": "grid"}, ("read_out", "out_features")),
        ({"architecture": "transformer"}, ("blocks", "modules", 1, "feed_forward", "d_model")),
    ],
)
def test_one_is_not_one_point_zero(options: dict[str, Any], path: tuple[str | int, ...], tmp_path: Path) -> None:
    sumformer.construct("x*mean(y)", 0.4, n=2, **options).save(tmp_path)

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = float(data[path[-1]])

    rewrite(tmp_path / "config.json", change)
    with pytest.raises(FileFormatError):
        check(sign(tmp_path))
    with pytest.raises(FileFormatError):
        sumformer.load(tmp_path)


def test_positions_are_true_or_not_recorded(tmp_path: Path) -> None:
    """`load` took 1 for true, the checker did not."""
    options: dict[str, Any] = {"d": 2, "n": 2, "box": "0:1,1:2", "architecture": "deep-transformer"}
    sumformer.construct("mean(y[0])+mean(y[1])", 0.9, **options).save(tmp_path)
    rewrite(tmp_path / "certificate.json", lambda data: data["constants"].update(positions=1))
    assert not check(sign(tmp_path)).verified


# ---- false outputs of c(X)


def test_a_source_counts_a_whole_number_of_times() -> None:
    """1 + 1023·2⁻⁵³ in a group of 1024 is rounded 1023 times; for n ≤ 2 one rounding was counted."""
    c = sumformer.construct("mean(y)", 1e-9, n="1..2")
    w = torch.full((1, c.network.group), 0.999 * 2.0**-53, dtype=torch.float64)
    w[0, 0] = 1
    X, Z = torch.ones(1, 1, 1, dtype=torch.float64), torch.ones(1, w.shape[1], 1, dtype=torch.float64)
    with pytest.raises(InputError, match="whole numbers"):
        c(X, sources=Z, weights=w)
    assert float((c(X, sources=Z, weights=w.floor()) - 1).abs().max()) <= c.certificate.total
    assert torch.equal(c(X, sources=Z, weights=w == 1), c(X, sources=Z, weights=w.floor()))
    with pytest.raises(ShapeError):
        c(X, sources=Z, weights=w[0])


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("x*mean(y)", {"architecture": "transformer"}),  # was off by 1e-3 in float16
        ("x*mean(y)", {}),  # has no weights, but the box's centre
        ("mean(exp(x*y))", {}),
        ("mean(exp(x*y))", {"route": "grid"}),
    ],
)
def test_a_converted_network_has_no_certificate(source: str, options: dict[str, Any]) -> None:
    c = sumformer.construct(source, 0.01, n=3, box="0:0.3", **options)
    X = torch.full((1, 3, 1), 0.1, dtype=torch.float64)
    found = c(X)
    for dtype in (torch.float16, torch.float32):
        c.network.to(dtype)
        with pytest.raises(InputError, match="converted"):
            c(X)
    again = sumformer.construct(source, 0.01, n=3, box="0:0.3", **options)
    again.network.double()
    assert torch.equal(copy.deepcopy(again)(X), found)


def test_every_query_lies_in_the_box_also_where_queries_are_the_sources() -> None:
    """A mask is of the sources: of the query it hides as a source the output is asked for all the same."""
    c = sumformer.construct("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", 1e-4)
    X, keep = torch.rand(1, 4, 1, dtype=torch.float64), torch.tensor([[0, 1, 1, 1]])
    assert torch.equal(c(X, sources=X, attention_mask=keep), c(X, sources=X.clone(), attention_mask=keep))
    X[0, 0] = 99
    c(X, attention_mask=keep)
    with pytest.raises(OutsideBoxError):
        c(X, attention_mask=1 - keep)
    for sources in (X, X.clone()):
        with pytest.raises(OutsideBoxError):
            c(X, sources=sources, attention_mask=keep)


def test_weights_and_tokens_of_other_kinds_are_refused() -> None:
    c, X = sumformer.construct("mean(y)", 1e-3), torch.rand(1, 2, 1)
    for weights in ([[1, 1]], torch.ones(1, 2, dtype=torch.complex64)):
        with pytest.raises(InputError, match="a tensor of whole numbers"):
            c(X, sources=X, weights=weights)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="float8"):
        c(X.to(torch.float8_e4m3fn))


@pytest.mark.parametrize(("arithmetic", "edge"), [("mixed", "1e-37"), ("float32", "1e-32"), ("float64", "1e-300")])
def test_boxes_of_subnormal_tokens_are_refused(arithmetic: str, edge: str) -> None:
    """Where a device takes such tokens for 0, 1e37·x is off by 0.1."""
    with pytest.raises(RefusedError, match="lose their digits"):
        sumformer.construct(f"x/{edge}", 1e-3, box=f"0:{edge}", dtype=arithmetic)


# ---- true certificates that were refused


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_coordinates_are_not_multiplied(dtype: str, tmp_path: Path) -> None:
    """p ⊛ Σ has 2 entries for each y_c, not 2⁵."""
    sumformer.construct("mean(y[0]+y[1]+y[2]+y[3]+y[4])", 0.1, d=5, n=2, dtype=dtype).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


THIN: list[tuple[str, float, dict[str, Any]]] = [
    ("x", 0.128, {"n": 2, "box": "-1/3:1/7", "architecture": "sparse-transformer", "p": 8}),
    ("max(i*y)", 0.568, {"n": 3, "positions": True, "architecture": "sparse-transformer", "p": 3.5}),
]


@pytest.mark.parametrize(("source", "epsilon", "options"), THIN)
def test_thin_ramps_verify(source: str, epsilon: float, options: dict[str, Any], tmp_path: Path) -> None:
    """Kinks that are multiples of 2⁻³⁰ meet weights that are multiples of 2³⁰: their products are whole numbers."""
    sumformer.construct(source, epsilon, **options).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


# ---- refusals that were errors of Python


@pytest.mark.parametrize(
    ("source", "epsilon", "options"),
    [("1e-200*x", 1e-201, {"p": 3.5}), ("1e200*x", 4e199, {"p": 2.0}), ("exp(-x)*mean(y)", 1e24, {"box": "-1e6:1e6"})],
)
def test_targets_beyond_float64_are_refused(source: str, epsilon: float, options: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        sumformer.construct(source, epsilon, n=2, architecture="deep-transformer", **options)

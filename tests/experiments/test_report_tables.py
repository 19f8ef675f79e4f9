"""The constants of a route as a table: every number whole."""

from __future__ import annotations

from sumformer.experiments.construction_report.tables import constant_rows, tables
from sumformer.theorems.construction import construct


def numbers(value):
    """Every number in nested constants."""
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    if isinstance(value, list):
        return [n for part in value for n in numbers(part)]
    return [value] if isinstance(value, int | float) else []


def test_constants_of_a_compiled_symmetric_network():
    made = construct("exp(x*sum(y))", 1e-2, d=1, n=3, architecture="transformer", route="symmetric")
    (html,) = tables(made)
    ideal = made.certificate.constants["ideal"]
    assert len(str(ideal)) > 200
    assert len(numbers(ideal)) > 8
    for number in numbers(ideal):
        assert f">{number}</td>" in html
    assert "{" not in html
    assert "<td>ideal: ellipses 1: rho</td>" in html


def test_long_lists_are_counted():
    rows = dict(constant_rows({"a": list(range(1000)), "b": [], "c": [1, 2], "d": [{"e": 1}] * 100, "f": None}))
    counted = "entries, in certificate.json"
    assert rows == {"a": f"1000 {counted}", "b": "none", "c": "1, 2", "d": f"100 {counted}", "f": "none"}

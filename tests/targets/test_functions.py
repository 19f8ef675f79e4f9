"""Functions for Python build what the same source parses to."""

import pytest

from sumformer.errors import TargetError
from sumformer.targets import from_lambda, functions, parse
from sumformer.targets.calls import FUNCTIONS, build_call, explain_name
from sumformer.targets.functions import cat, dot, exp, max_, mean, min_, norm, norm2, sum_, sum_others, total


@pytest.mark.parametrize(
    ("fn", "source"),
    [
        (lambda x, y: mean(exp(-norm2(x - y)) * y), "mean(exp(-norm2(x - y))*y)"),
        (lambda x, y: sum_(y) / 3 + 0.5 * sum_others(y) ** 3, "sum(y)/3 + 0.5*sum_others(y)**3"),
        (lambda x, y: max_(y) - min_(x, 1), "max(y) - min(x, 1)"),
        (lambda x, y: cat(x[0], dot(x, mean(y)), total(x), norm(x)), "cat(x[0], dot(x, mean(y)), total(x), norm(x))"),
        (lambda x, y: 1, "1"),
    ],
)
def test_lambdas(fn, source):
    assert from_lambda(fn, 2) == parse(source, 2)


def test_a_lambda_that_returns_no_expression():
    with pytest.raises(TargetError, match="returned no expression"):
        from_lambda(lambda x, y: "x", 1)


def test_every_function_of_the_language_has_a_python_name():
    names = {"sum": "sum_", "max": "max_", "min": "min_", "abs": "abs_"}
    token = parse("y", 1, free_y=True)
    for name in FUNCTIONS:
        arguments = (token, token) if name == "dot" else (token,)
        assert getattr(functions, names.get(name, name))(*arguments) == build_call(name, arguments)


def test_unknown_names():
    assert "did you mean tanh" in explain_name("tahn")
    with pytest.raises(TargetError, match="unknown name"):
        build_call("foo", (parse("x", 1),))

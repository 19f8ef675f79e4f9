"""n as a symbol: degrees, refusals, and that replacing sums by means changes nothing where n cancels."""

import pytest
import torch

from sumformer.errors import TargetError
from sumformer.targets import homogeneity, parse, to_source, without_counts
from sumformer.targets.torch_evaluation import evaluate_tensor


@pytest.mark.parametrize(
    ("source", "degree"),
    [
        ("x + 2", (0, 0)),
        ("sum(y)", (1, 0)),
        ("mean(y)", (0, 0)),
        ("sum_others(y)", (0, 1)),
        ("sum(y)*sum_others(y)**3", (1, 3)),
        ("sum(y)/sum(y**2)", (0, 0)),
        ("x/sum(y)", (-1, 0)),
        ("sum(y*sum(y))", (2, 0)),
        ("max(y*sum(y)) + min(sum(y), 0)", (1, 0)),
        ("norm2(sum(y)) + dot(sum(y), sum(y))", (2, 0)),
        ("norm(sum(y)) + abs(total(-sum(y)[0]))", (1, 0)),
        ("sqrt(sum(y)**2)", (1, 0)),
        ("cat(sum(y), 0)", (1, 0)),
        ("0*sum(y) + x", (0, 0)),
        ("0/sum(y) + x", (0, 0)),
        ("exp(0*sum(y))", (0, 0)),
        ("sum(y)**0", (0, 0)),
        ("0", (0, 0)),
    ],
)
def test_degrees(source, degree):
    assert homogeneity(parse(source, 2)) == degree


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("x + sum(y)", r"x \+ sum\(y\)"),
        ("exp(sum(y))", r"'sum\(y\)'.*inside exp"),
        ("sqrt(sum(y))", "inside sqrt"),
        ("sum(y) - sum_others(y)", r"grows as n, 'sum_others\(y\)' as \(n-1\)"),
        ("max(x, sum(y))", "max"),
        ("cat(x, sum(y))", "cat"),
        ("1/(1 + sum(y))", r"1 \+ sum\(y\)"),
    ],
)
def test_clashes_name_the_sub_expression(source, part):
    with pytest.raises(TargetError, match=f"needs tokens.*{part}.*mean.*--tokens N"):
        homogeneity(parse(source, 2))


def test_without_counts():
    source = "sum(exp(x - y)*y)/sum(exp(x - y)) + sum_others(y)/sum_others(1 + y)"
    tree = parse(source, 2)
    free = without_counts(tree)
    assert to_source(free) == source.replace("sum_others", "mean_others").replace("sum(", "mean(")
    X = torch.rand(2, 5, 2, dtype=torch.float64)
    torch.testing.assert_close(evaluate_tensor(free, X), evaluate_tensor(tree, X))
    with pytest.raises(TargetError, match="needs tokens"):
        without_counts(parse("sum(y)", 1))

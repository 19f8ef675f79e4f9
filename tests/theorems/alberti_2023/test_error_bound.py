"""The bound against what networks do: never below, parts that add up, and honest in every arithmetic."""

import pytest
import torch

from sumformer.errors import DomainError
from sumformer.targets import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.build import build
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import decompose
from sumformer.theorems.alberti_2023.interpolation import Studies
from sumformer.theorems.alberti_2023.plan import make_plan
from sumformer.theorems.alberti_2023.split import measure, token_pieces

SOURCES = {
    "mean(exp(-norm2(x-y)))": ("any", 2),
    "sum(exp(-2*norm2(x-y))*y)/sum(exp(-2*norm2(x-y)))": ("any", 1),
    "sum(exp(x*y)*(y-x))/sum(exp(x*y))": ("any", 1),
    "sum_others(exp(x*y)*y)/sum_others(exp(x*y))": ("any", 1),
    "sum(cos(x*y))": ("7", 1),
    "mean_others(sigmoid(3*(x-y)))": ("2..9", 1),
    "(x-mean(y))/sqrt(mean((y-mean(y))**2)+0.1)": ("any", 2),
    "log(1+mean(exp(dot(x,y))))*norm(x-mean(y))": ("any", 2),
    "exp(x)/sum(exp(y))": ("..50", 1),
    "sum(exp(x*y))/sum(1+y**2)": ("any", 1),
}


def plan_of(f, tolerance, dtype, grouping="joint"):
    decomposition = decompose(f.countless, f.box, grouping)
    studies = Studies(f.box)
    kernels = {k: studies.of(k) for k in decomposition.kernels}
    return make_plan(decomposition, kernels, dict.fromkeys(kernels, 1.0), tolerance, dtype)


def split_of(f, plan, arithmetic):
    cells = Cells(f.box)
    return measure(plan, ARITHMETICS[arithmetic], cells, token_pieces(plan.decomposition, cells, f.tokens))


@pytest.mark.parametrize("name", ["float64", "float32", "mixed"])
@pytest.mark.parametrize("source", SOURCES)
def test_no_sampled_error_exceeds_the_bound(source, name):
    tokens, d = SOURCES[source]
    f = target(source, n=tokens, d=d)
    arithmetic = ARITHMETICS[name]
    plan = plan_of(f, 1e-3, arithmetic.dtype)
    split = split_of(f, plan, name)
    network = build(plan, arithmetic)
    generator = torch.Generator().manual_seed(1)
    n = min(f.tokens.maximum, 12)
    uniform = torch.rand(64, n, d, generator=generator, dtype=network.outside)
    corners = torch.randint(0, 2, (64, n, d), generator=generator).to(network.outside)
    X = torch.cat([uniform, corners, torch.where(uniform > 0.5, uniform, corners)])
    with torch.no_grad():
        error = (f(X.double()) - network(X).double()).abs().max()
    assert float(error) <= split.total < 0.2
    assert min(split.remainder, split.dropped, split.rounding) >= 0


def test_a_finer_plan_has_a_smaller_bound():
    f = target("mean(exp(-4*norm2(x-y)))", d=1)
    totals = [split_of(f, plan_of(f, t, "float64"), "float64").total for t in (1e-1, 1e-3, 1e-6)]
    assert totals[0] > 50 * totals[1] > 2500 * totals[2]


def test_rounding_grows_with_the_precision_lost_and_with_n_for_sums():
    f, g = target("sum(y)", n="10"), target("sum(y)", n="1000")
    one = split_of(f, plan_of(f, 1, "float64"), "float64").total
    many = split_of(g, plan_of(g, 1, "float64"), "float64").total
    coarse = split_of(f, plan_of(f, 1, "float32"), "float32").total
    assert many > 50 * one
    assert coarse > 1e6 * one


@pytest.mark.parametrize("source", ["1/mean(y)", "log(mean(y))", "sqrt(mean(y) - 0.5)", "sum(y)/sum(y - 0.5)"])
def test_leaving_the_domain_is_refused(source):
    f = target(source, d=1)
    with pytest.raises(DomainError):
        split_of(f, plan_of(f, 1e-3, "float64"), "float64")


def test_a_variance_is_known_to_be_non_negative():
    f = target("sqrt(mean((y-mean(y))**2) + 0.001)", d=1)
    assert split_of(f, plan_of(f, 1e-3, "float64"), "float64").total < 1e-8


def test_a_sum_is_tied_to_its_count():
    f = target("exp(x)/sum(exp(y))", n="..1000", box="-3:2")
    assert split_of(f, plan_of(f, 1e-3, "float64"), "float64").total < 1e-8

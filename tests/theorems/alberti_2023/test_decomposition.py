"""Σ_t a_t b_t p_t Π K_g is the body, exactly; what has no such form is refused."""

import random

import numpy as np
import pytest
from tests.theorems.values import number

from sumformer.errors import RefusedError
from sumformer.targets import parse
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.components import component
from sumformer.theorems.alberti_2023.decomposition import decompose

BODIES = [
    "y",
    "exp(-4*norm2(x-y))*y",
    "(y-x)/sqrt(norm2(x-y)+0.25)**3",
    "dot(x, y)*y**3 - x",
    "log(2 + y)*sin(x[0]*y[1])",
    "exp(y)/(1 + x**2)*(x - y)**2",
    "1/(3 + y[0])*x",
    "exp(dot(x, y))*exp(x[0] + y[0])**2",
]


def chebyshev(index, v):
    return np.prod([np.cos(k * np.arccos(t)) for k, t in zip(index, v, strict=True)])


@pytest.mark.parametrize("grouping", ["split", "joint"])
@pytest.mark.parametrize("body", BODIES)
def test_terms_add_up_to_the_body(body, grouping):
    box = Box.parse("0:1,-1:2", 2)
    decomposition = decompose(parse(f"mean({body})", 2), box, grouping)
    (parts,) = decomposition.sums
    generator = random.Random(body)
    for _ in range(4):
        x, y = ([generator.uniform(0, 1), generator.uniform(-1, 2)] for _ in range(2))
        v = [(t - float(c)) / float(r) for t, c, r in zip(y, box.centre, box.radius, strict=True)]
        for c, terms in enumerate(parts.components):
            got = 0.0
            for term in terms:
                p = sum(float(w) * chebyshev(g, v) for g, w in term.polynomial)
                kernels = np.prod([number(k, x, y) for k in term.kernels])
                got += number(term.own_node, x, y) * number(term.channel, x, y) * p * kernels
            wanted = number(component(parts.reduction.body, c), x, y)
            assert got == pytest.approx(wanted, rel=1e-10, abs=1e-10)


def test_each_side_is_what_it_says():
    decomposition = decompose(parse("mean(exp(-norm2(x-y))*cos(y[0])*tanh(x[1]))", 2), Box.unit(2), "split")
    for term in decomposition.sums[0].components[0]:
        assert "y" not in term.own_node.free
        assert "x" not in term.channel.free
        assert all(k.free == {"x", "y"} for k in term.kernels)


def test_shared_kernels_are_one_kernel():
    source = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"
    assert len(decompose(parse(source, 2), Box.unit(2), "split").kernels) == 2


@pytest.mark.parametrize(
    ("source", "polynomial"),
    [
        ("x + 7*x**2 + 3*x*sum_others(y)**3", True),
        ("mean((y - mean(y))**2)", True),
        ("mean(exp(y))", False),
        ("exp(mean(y))", False),
        ("1/(2 + mean(y))", False),
        ("mean(dot(x, y)*y)/3", True),
    ],
)
def test_polynomials_are_recognised(source, polynomial):
    assert decompose(parse(source, 1), Box.unit(1), "split").polynomial is polynomial


@pytest.mark.parametrize("source", ["max(y)", "x - min(norm(x - y))"])
def test_extrema_over_tokens_are_refused(source):
    with pytest.raises(RefusedError, match="not made of sums"):
        decompose(parse(source, 1), Box.unit(1), "split")


def test_a_reduction_inside_a_kernel_is_refused():
    with pytest.raises(RefusedError, match="nested reduction"):
        decompose(parse("mean(exp(-(y - mean(y))**2))", 1), Box.unit(1), "joint")

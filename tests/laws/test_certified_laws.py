"""For every construction: no input of the domain errs by more than its certificate says, whatever the target."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from sumformer.certificates.attack import attack, violation
from sumformer.errors import DomainError, RefusedError, TargetError
from sumformer.targets.target import Target, target
from sumformer.theorems.construction import construct

BLOCK = 20
FAST_BLOCKS, SLOW_BLOCKS = 6, 110
FAST_DIMENSIONS, SLOW_DIMENSIONS = (1, 1, 1, 1, 1, 1, 1, 2), (1, 1, 1, 1, 1, 2, 2, 3)
BOXES = ("0:1", "0:1", "-1:1", "-1:2", "0.1:0.3", "1/3:2/3", "-3:-2", "5:6", "-0.7:0")
MIXED_BOXES = ("0:1,-2:2", "-1:1,0.1:0.3", "0:1,3:3.5")


def number(rng: Random, low: float, high: float) -> str:
    return f"{rng.uniform(low, high):.2g}"


def scalar(rng: Random, d: int) -> str:
    """A width-1 polynomial that mixes x and y."""
    plain = ["total(x - y)", "dot(x, y)", "total(x + y)", f"(x[0] - {number(rng, 0.2, 2)}*y[{d - 1}])"]
    return rng.choice([*plain, "(x[0]*y[0] + x[0])", f"x[{d - 1}]*y[0]**2"])


def positive_kernel(rng: Random, d: int) -> str:
    c = number(rng, 0.1, 2)
    return rng.choice(
        [
            f"exp(-{c}*norm2(x - y))",
            f"exp({c}*dot(x, y))",
            f"sigmoid({scalar(rng, d)}/{number(rng, 0.3, 3)})",
            f"1/({number(rng, 0.5, 3)} + norm2(x - y))",
            f"sqrt({number(rng, 0.5, 3)} + norm2(x - y))",
            f"(2 + cos({scalar(rng, d)}))",
            f"exp({scalar(rng, d)})*exp(-{c}*y[0])",
        ]
    )


def kernel(rng: Random, d: int) -> str:
    c = number(rng, 0.2, 2)
    s = scalar(rng, d)
    signed = [f"tanh({c}*{s})", f"cos({c}*{s})", f"sin({s})", f"log({number(rng, 1, 3)} + norm2(x - y))"]
    return positive_kernel(rng, d) if rng.random() < 0.5 else rng.choice(signed)


def value(rng: Random, d: int) -> str:
    return rng.choice(["y", "y", "y[0]", f"y[{d - 1}]**2", "norm2(y)", "(y - x)", "sin(y[0])", "x*y", "1"])


def reduction(rng: Random, d: int, *, others: bool) -> str:
    """A mean of a kernel times a value, or of a polynomial."""
    name = "mean_others" if others else "mean"
    body = rng.choice([f"{kernel(rng, d)}*{value(rng, d)}", kernel(rng, d), f"y*{scalar(rng, d)}", "y", "y**2"])
    return f"{name}({body})"


def term(rng: Random, d: int, *, summable: bool) -> str:
    """One expression of a random class."""
    others = rng.random() < 0.2
    mean = reduction(rng, d, others=others)
    tail = "_others" if others else ""
    k, v = positive_kernel(rng, d), value(rng, d)
    v = "y" if v == "1" else v
    choices = [
        mean,
        f"sum{tail}({k}*{v})/sum{tail}({k})",
        f"sum{tail}({k}*{v})/sum{tail}({k})",
        f"tanh({mean})",
        f"exp(-{mean}/4)",
        f"{mean}/(2 + mean(y[0]**2))",
        f"x*mean(y)**{rng.randint(1, 3)} - {number(rng, 0, 3)}*x**2",
        f"mean((y - mean(y))**{rng.randint(2, 3)})",
        f"(x - mean(y))/sqrt(mean((y - mean(y))**2) + {number(rng, 0.1, 1)})",
        f"mean(y*{mean})",
        f"sin({number(rng, 1, 3)}*mean{tail}(y) + x)",
        f"sqrt({number(rng, 0.2, 2)} + mean{tail}(y**2))",
        f"mean({k})*x + log(1 + mean(norm2(x - y)))",
    ]
    sums = [
        mean.replace("mean", "sum", 1),
        f"x + x*sum_others(y)**{rng.randint(1, 2)}",
        f"log(1 + sum{tail}({k}))",
        f"exp(x[0])/sum({k})",
    ]
    return rng.choice(sums if summable and rng.random() < 0.4 else choices)


def random_case(seed: int, dims: tuple[int, ...]) -> tuple[Target, float, str]:
    """A target of the language, ε and an arithmetic."""
    rng = Random(seed)
    d = rng.choice(dims)
    tokens = rng.choice(("any", "any", "any", "any..5000", "2", "3", "5", "..50", "2..9", "1000"))
    first = term(rng, d, summable="any" not in tokens)
    source = first
    if d == 1 and rng.random() < 0.3:
        second = term(rng, d, summable=False)
        source = rng.choice([f"{first} + {second}", f"({first})*({second})", f"cat({first}, {second})"])
    box = rng.choice(MIXED_BOXES if d == 2 and rng.random() < 0.3 else BOXES)
    dtype = rng.choice(("float64", "float64", "float64", "mixed", "float32"))
    epsilon = 10.0 ** -rng.uniform(1, 3 if dtype == "float32" else 4 if d > 1 else 6)
    return target(source, n=tokens, d=d, box=box), epsilon, dtype


pytestmark = pytest.mark.usefixtures("one_thread")


def check(seed: int, dims: tuple[int, ...]) -> str:
    """Construct, attack; what happened."""
    try:
        f, epsilon, dtype = random_case(seed, dims)
        construction = construct(f, epsilon, dtype=dtype)
    except (RefusedError, DomainError, TargetError) as refusal:
        return type(refusal).__name__
    claimed = construction.certificate.total
    assert claimed <= epsilon
    result = attack(construction.target, construction.network, effort="quick", seed=seed)
    if not result.worst <= claimed:
        violated, refined = violation(result, claimed)
        assert not violated, (
            f"case {seed}: {f!r}, ε = {epsilon:.2e}, {dtype}: certified {claimed:.3e}, found {refined:.3e}\n"
            f"{result.witness}"
        )
    return "built"


def check_block(block: int, dims: tuple[int, ...]) -> None:
    outcomes = Counter(check(seed, dims) for seed in range(block * BLOCK, (block + 1) * BLOCK))
    assert outcomes["built"] >= BLOCK // 2, f"block {block}: {dict(outcomes)}"


@pytest.mark.parametrize("block", range(FAST_BLOCKS))
def test_no_input_errs_by_more_than_is_certified(block):
    check_block(block, FAST_DIMENSIONS)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(FAST_BLOCKS, FAST_BLOCKS + SLOW_BLOCKS))
def test_no_input_errs_by_more_than_is_certified_in_many_cases(block):
    check_block(block, SLOW_DIMENSIONS)

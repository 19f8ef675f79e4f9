"""What a refusal of a compiled network names as nearest is built when it is asked for."""

from __future__ import annotations

import pytest

import sumformer
from sumformer.errors import DomainError, RefusedError
from sumformer.theorems.nearest import RATIO, nearest


def least(limit: float, hints: bool) -> tuple[list[float], object]:
    """An attempt that goes through from `limit` on, and what it was asked."""
    asked: list[float] = []

    def attempt(epsilon: float) -> None:
        asked.append(epsilon)
        if epsilon < limit:
            raise RefusedError("too small", reachable=1.1 * epsilon if hints else None)

    return asked, attempt


@pytest.mark.parametrize("hints", [False, True])
@pytest.mark.parametrize("guess", [1e-12, 3e-9, 0.5])
def test_it_is_the_least_to_a_factor(guess: float, hints: bool) -> None:
    asked, attempt = least(3.3e-9, hints)
    found = nearest(attempt, 1e-13, guess)  # type: ignore[arg-type]
    assert found in asked
    assert 3.3e-9 <= found <= 1.2 * RATIO * 3.3e-9
    assert float(f"{found:.2g}") == found  # what is printed is what was tried


def test_subnormal_numbers() -> None:
    """Their products are 0, of which there is no logarithm."""
    _, attempt = least(3e-306, True)
    found = nearest(attempt, 1e-310, 1e-305)  # type: ignore[arg-type]
    assert found is not None
    assert 3e-306 <= found <= 1.2 * RATIO * 3e-306


def test_none_where_nothing_goes_through() -> None:
    _, attempt = least(float("inf"), True)
    assert nearest(attempt, 1e-3, 1e-2) is None  # type: ignore[arg-type]

    def outside(epsilon: float) -> None:
        raise DomainError("log of 0")

    assert nearest(outside, 1e-3, 1e-2) is None


@pytest.mark.parametrize(
    ("expression", "epsilon", "n"),
    [("exp(x*sum(y))", 1e-13, 3), ("log(1+sum(y**2))", 1e-13, 5), ("mean(x*y)", 1e-15, 4)],
)
def test_what_a_compiled_network_is_refused_with_can_be_had(expression: str, epsilon: float, n: int) -> None:
    with pytest.raises(RefusedError, match="nearest, by trying") as refused:
        sumformer.construct(expression, epsilon, d=1, n=n, architecture="performer")
    named = refused.value.reachable
    assert named is not None
    assert f"ε = {named:g}" in str(refused.value)
    made = sumformer.construct(expression, named, d=1, n=n, architecture="performer")
    assert made.certificate.total <= named
    with pytest.raises(RefusedError):
        sumformer.construct(expression, max(named / 3, epsilon), d=1, n=n, architecture="performer")


def test_a_refused_polynomial_names_route_exact() -> None:
    with pytest.raises(RefusedError, match=r"(?s)- exact: .*by route exact$") as refused:
        sumformer.construct("x - mean(y)", 3e-13, d=1)
    assert refused.value.reachable is not None
    assert sumformer.construct("x - mean(y)", refused.value.reachable, d=1).certificate.route == "exact"

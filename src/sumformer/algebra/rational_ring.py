"""ℚ[t_1, …, t_k] by python-flint: generators, {exponents: Fraction} in and out; imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sumformer.errors import MissingDependencyError


class RationalRing:
    """ℚ[t_1, …, t_k]; its elements are `fmpq_mpoly`, with +, −, ·, **."""

    def __init__(self, generators: int) -> None:
        try:
            from flint import Ordering, fmpq, fmpq_mpoly_ctx
        except ImportError as error:
            raise MissingDependencyError("python-flint", "the ring of polynomials", "certify") from error
        self._fmpq = fmpq
        self._context = fmpq_mpoly_ctx.get(("t", generators), Ordering.degrevlex)
        self.generators: tuple[Any, ...] = tuple(self._context.gens())

    def constant(self, value: Fraction | int) -> Any:
        return self._context.constant(self._fmpq(value.numerator, value.denominator))

    def element(self, terms: Mapping[tuple[int, ...], Fraction]) -> Any:
        return self._context.from_dict({e: self._fmpq(c.numerator, c.denominator) for e, c in terms.items()})

    def product(self, exponents: Mapping[int, int]) -> Any:
        """Π t_i^{e_i}."""
        full = [0] * len(self.generators)
        for i, e in exponents.items():
            full[i] += e
        return self._context.from_dict({tuple(full): 1})


def terms_of(element: Any) -> dict[tuple[int, ...], Fraction]:
    """{exponents: coefficient} of an element."""
    return {tuple(map(int, e)): Fraction(int(c.numerator), int(c.denominator)) for e, c in element.to_dict().items()}


def available() -> bool:
    """Whether python-flint is installed."""
    try:
        import flint  # noqa: F401
    except ImportError:
        return False
    return True

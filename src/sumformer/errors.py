"""One tree of exceptions. Each carries the data a caller needs to recover, and a message that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SumformerError(Exception):
    """Base of everything this package raises on purpose: a user's mistake or a refusal, never a bug."""


class InputError(SumformerError, ValueError):
    """An argument has the wrong shape, dtype or value: what was expected, what came, in which call."""


class ShapeError(InputError):
    """`where` expected a tensor of one shape and got another."""

    def __init__(self, where: str, expected: str, got: Sequence[int] | str) -> None:
        self.where, self.expected, self.got = where, expected, got
        came = got if isinstance(got, str) else f"shape {tuple(got)}"
        super().__init__(f"{where}: expected {expected}, got {came}")


class DtypeError(InputError, TypeError):
    """`where` expected a tensor of one dtype and got another."""

    def __init__(self, where: str, expected: str, got: object) -> None:
        self.where, self.expected, self.got = where, expected, got
        super().__init__(f"{where}: expected {expected}, got {got}")


class NotSymmetricError(InputError):
    """A polynomial changes when two tokens change places: `exponents` and `coefficients` of two terms that differ."""

    def __init__(
        self, exponents: Sequence[Sequence[int]], coefficients: Sequence[object], tokens: Sequence[int]
    ) -> None:
        self.exponents, self.coefficients, self.tokens = exponents, coefficients, tokens
        (a, b), (c, e) = exponents, coefficients
        places = " and ".join(str(t + 1) for t in tokens)
        found = f"exponents {tuple(a)} have coefficient {c}, but {tuple(b)} have {e}"
        super().__init__(f"expected a polynomial that is the same when tokens {places} change places: {found}")


class NotEquivariantError(InputError):
    """F(PX) ≠ P F(X): the tokens `X` (n, d), the permutation (token k of PX is `X[permutation[k]]`), the difference."""

    def __init__(self, name: str, X: Any, permutation: Sequence[int], difference: float) -> None:
        self.X, self.permutation, self.difference = X, tuple(permutation), difference
        moved = f"its outputs are not permuted with its tokens: they differ by {difference:.3g}"
        where = f"at X = {X.tolist()} under the permutation {self.permutation}"
        hint = "a function of the order of the tokens is to be written as a formula, with positions=True"
        if difference < 1e-5:
            hint = f"so little may be float32's rounding: let it compute in float64, as its tokens are; else {hint}"
        super().__init__(f"{name} is not permutation-equivariant: {moved} {where}; {hint}")


class LipschitzRefutedError(InputError):
    """‖F(X) − F(Y)‖ exceeds `claimed` times the largest move of a token: it is at least `found` times that move."""

    def __init__(self, name: str, X: Any, Y: Any, claimed: float, found: float) -> None:
        self.X, self.Y, self.claimed, self.found = X, Y, claimed, found
        where = f"between X = {X.tolist()} and Y = {Y.tolist()}"
        super().__init__(f"{name} has no Lipschitz constant {claimed:g}: its slope is {found:.4g} {where}")


class FileFormatError(SumformerError, ValueError):
    """A file is missing, truncated, foreign, or does not fit the model it is loaded into."""

    def __init__(self, path: object, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f"{path}: {reason}")


class NotSupportedError(SumformerError):
    """The definition does not allow what was asked (causal order for a Linformer, say)."""


class MissingDependencyError(SumformerError, ImportError):
    """A part needs an optional package that is not installed."""

    def __init__(self, package: str, part: str, extra: str) -> None:
        self.package, self.part, self.extra = package, part, extra
        super().__init__(f"{part} needs {package}; install it with: pip install 'sumformer[{extra}]'")


class TargetError(SumformerError, ValueError):
    """A target expression cannot be read or does not make sense; `position` points into the source text."""

    def __init__(self, message: str, source: str | None = None, position: int | None = None) -> None:
        self.reason, self.source, self.position = message, source, position
        pointer = f"\n  {source}\n  {' ' * position}^" if source is not None and position is not None else ""
        super().__init__(message + pointer)


class DomainError(SumformerError, ValueError):
    """A function leaves its domain on the box: not analytic, a denominator that may vanish, log or sqrt of ≤ 0."""

    def __init__(self, message: str, expression: str | None = None, where: object = None) -> None:
        self.expression, self.where = expression, where
        super().__init__(message)


class UndefinedError(DomainError):
    """The target itself could not be shown to exist on the whole box."""


class OutsideBoxError(SumformerError, ValueError):
    """A token lies outside the box on which a construction is certified."""

    def __init__(self, message: str, index: tuple[int, ...]) -> None:
        self.index = index
        super().__init__(message)


class RefusedError(SumformerError):
    """A construction cannot meet what was asked. `reasons` lists every route tried; `reachable` the best bound."""

    def __init__(self, message: str, reasons: Sequence[str] = (), reachable: float | None = None) -> None:
        self.reasons, self.reachable = tuple(reasons), reachable
        super().__init__("\n".join([message, *(f"  - {reason}" for reason in reasons)]))


class CertificateError(SumformerError):
    """A certificate does not verify; `term` names the part that failed."""

    def __init__(self, message: str, term: str | None = None) -> None:
        self.term = term
        super().__init__(message)


class TrainingError(SumformerError):
    """Training cannot go on: the loss is not finite, or a checkpoint cannot be written. The last good state is kept."""


class DivergedError(TrainingError):
    """The loss is infinite or NaN: no step from here leads anywhere. `fitted` has the best weights so far, if any."""

    def __init__(self, message: str, fitted: Any = None) -> None:
        self.fitted = fitted
        super().__init__(message)


class FolderInUseError(InputError):
    """`folder` holds files (`there`) that a run would replace; `resumable` says whether it could go on with them."""

    def __init__(self, folder: Any, there: Sequence[str], resumable: bool, ways: tuple[str, str]) -> None:
        self.folder, self.there, self.resumable = folder, tuple(there), resumable
        resume, overwrite = ways
        more = f"go on with {resume}, or begin anew over it with {overwrite}"
        what = more if resumable else f"begin anew over it with {overwrite}"
        super().__init__(f"{folder} holds {', '.join(there)} already: {what}")

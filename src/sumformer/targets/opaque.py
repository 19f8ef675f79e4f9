"""F: 𝒳ⁿ → ℝ^{n×width} known only by its values: any Python function of tensors (batch, n, d), with an assumed modulus.

Equivariance, F(PX) = P F(X), and the Lipschitz constant are *tested*, ties included: a counterexample refutes them and
is shown; nothing here proves them, so both are assumptions of whatever is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sumformer.errors import InputError, LipschitzRefutedError, NotEquivariantError, ShapeError
from sumformer.targets.domain import Box, Tokens

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "opaque:"
TRIALS = 256
TOLERANCE = 1e-9  # relative; sums in another order differ by far less


@dataclass(frozen=True)
class OpaqueTarget:
    """`function` on box^n; ‖F(X) − F(X')‖_∞ ≤ `lipschitz`·max|x_{j,c} − x'_{j,c}| is taken for granted."""

    function: Callable[[Tensor], Tensor] | None
    name: str
    width: int
    d: int
    box: Box
    tokens: Tokens
    lipschitz: float
    positioned: bool = False

    @property
    def source(self) -> str:
        """opaque:module:qualified.name."""
        return PREFIX + self.name

    @property
    def input_box(self) -> Box:
        return self.box

    def __call__(self, X: Tensor) -> Tensor:
        if self.function is None:
            raise InputError(f"only the name {self.name} was saved, not the function: give it, load(…, function=…)")
        if X.dim() != 3 or X.shape[-1] != self.d:
            raise ShapeError("target", f"X of shape (batch, n, {self.d})", X.shape)
        value = self.function(X.clone())  # it may write into what it is given
        if tuple(value.shape) != (*X.shape[:2], self.width):
            raise ShapeError(self.name, f"a result of shape {(*X.shape[:2], self.width)}", tuple(value.shape))
        return value

    def __repr__(self) -> str:
        kind = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}"
        assumed = f"assumed Lipschitz constant {self.lipschitz:g}"
        return f"Target({self.name}, {self.box.formula()}, {self.tokens.formula()}, {kind}, {assumed})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted, in words."""
        return (
            f"modulus: moving the other tokens by at most δ in every coordinate moves an output of {self.name} by at "
            f"most {self.lipschitz!r}·δ",
            f"equivariance: {self.name} permutes its outputs as its tokens are permuted (tested on {TRIALS} lists)",
            f"{self.name} is a function of its tokens alone, and its computed values are the target",
        )


def opaque_target(
    function: Callable[[Tensor], Tensor], n: Tokens, d: int, box: Box, lipschitz: float, seed: int = 0
) -> OpaqueTarget:
    """The target of a Python function, after the tests that may refute it."""
    import torch

    if not (isinstance(lipschitz, int | float) and 0 <= lipschitz < float("inf")):
        raise InputError(f"target: expected a finite Lipschitz constant ≥ 0, got {lipschitz!r}")
    if n.symbolic:
        raise InputError("target: a function without a formula needs its number of tokens, n=8 or n='..8'")
    centre = torch.tensor([[[float(c) for c in box.centre]] * n.maximum], dtype=torch.float64)
    value = function(centre)
    if not isinstance(value, torch.Tensor) or value.dim() != 3 or value.shape[:2] != centre.shape[:2]:
        got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ShapeError("target", f"a function (batch, n, {d}) → (batch, n, width)", got)
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__name__)}"
    f = OpaqueTarget(function, name, value.shape[2], d, box, n, float(lipschitz))
    generator = torch.Generator().manual_seed(seed)
    for count in sorted({n.minimum, (n.minimum + n.maximum) // 2, n.maximum}):
        X = _lists(f, count, generator)
        _test_equivariance(f, X, generator)
        _test_modulus(f, X, generator)
    return f


def _lists(f: OpaqueTarget, n: int, generator: object) -> Tensor:
    """Random lists; every second one has tokens that are equal, every fourth lies on the box's faces."""
    import torch

    low, high = (torch.tensor([float(v) for v in end], dtype=torch.float64) for end in (f.box.lower, f.box.upper))
    U = torch.rand(TRIALS, n, f.d, generator=generator, dtype=torch.float64)  # type: ignore[call-overload]
    U[::4] = U[::4].round()
    copies = torch.randint(n, (TRIALS, n), generator=generator) // 2  # type: ignore[call-overload]
    ties = U.gather(1, copies[..., None].expand(-1, -1, f.d))
    U = torch.where((torch.arange(TRIALS) % 2 == 0)[:, None, None], U, ties)
    return low + (high - low) * U


def _test_equivariance(f: OpaqueTarget, X: Tensor, generator: object) -> None:
    import torch

    order = torch.stack([torch.randperm(X.shape[1], generator=generator) for _ in range(len(X))])  # type: ignore[call-overload]
    value = f(X)
    if not bool(value.isfinite().all()):
        row = int((~value.isfinite()).flatten(1).any(1).nonzero()[0])
        raise InputError(f"target: {f.name} is not finite at X = {X[row].tolist()}")
    moved = f(X.gather(1, order[..., None].expand(-1, -1, f.d)))
    expected = value.gather(1, order[..., None].expand(-1, -1, f.width))
    gap = (moved - expected).abs().nan_to_num(float("inf")).flatten(1).amax(1)
    row = int(gap.argmax())
    if float(gap[row]) > TOLERANCE * (1 + float(value.abs().nan_to_num(0.0).max())):
        raise NotEquivariantError(f.name, X[row], order[row].tolist(), float(gap[row]))


def _test_modulus(f: OpaqueTarget, X: Tensor, generator: object) -> None:
    """Moves of the other tokens of several sizes; token 1 stays, and its output must not move too far."""
    import torch

    low, high = (torch.tensor([float(v) for v in end], dtype=torch.float64) for end in (f.box.lower, f.box.upper))
    value = f(X)[:, 0]
    for size in (1.0, 0.1, 0.01):
        noise = torch.rand(X.shape, generator=generator, dtype=torch.float64) * 2 - 1  # type: ignore[call-overload]
        Y = (X + size * (high - low) * noise.sign() * noise.abs().sqrt()).clamp(low, high)
        Y[:, 0] = X[:, 0]
        step = (Y - X).abs().flatten(1).amax(1)
        gap = (f(Y)[:, 0] - value).abs().amax(-1)
        excess = gap - f.lipschitz * step * (1 + 1e-9) - TOLERANCE * (1 + value.abs().amax(-1))
        row = int(excess.argmax())
        if float(excess[row]) > 0:
            raise LipschitzRefutedError(f.name, X[row], Y[row], f.lipschitz, float(gap[row] / step[row]))

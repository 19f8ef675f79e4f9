"""Properties as numbers, for users' modules as much as for ours: each function returns an error, zero when it holds.

`equivariance_error(module, x)`   max ‖f(PX) − P f(X)‖ / max ‖f(X)‖ over random permutations P
`assert_certified(construction)`  attacks it: no error found exceeds the certificate
`padding_error(module, x)`        what padding tokens change at the real ones: outputs and input gradients
`empty_row_error(module, x)`      what a row of nothing but padding gives besides zeros, and does to the other rows
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, SumformerError

if TYPE_CHECKING:
    from sumformer.theorems.constructed import Construction

# One table for the whole project: what rounding alone may do to a relative error, per dtype. Of the two half precisions
# it is ten roundings, 10 · 2⁻¹¹ and 10 · 2⁻⁸: modules round each result to them, but add in float32.
TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 4e-2,
}


def tolerance_of(where: str, dtype: torch.dtype) -> float:
    """The table's entry; of a dtype it does not know the user has to say."""
    if dtype not in TOLERANCE:
        known = ", ".join(str(d) for d in TOLERANCE)
        raise InputError(
            f"{where}: the error that rounding makes is known for {known}, not for {dtype}: give tolerance=…"
        )
    return TOLERANCE[dtype]


class PropertyViolatedError(SumformerError, AssertionError):
    """A module does not have a property it should have; `error` is what was measured."""

    def __init__(self, message: str, error: float) -> None:
        self.error = error
        super().__init__(message)


def relative_error(got: Tensor, wanted: Tensor) -> float:
    """max |got − wanted| / max |wanted| (absolute where wanted is 0); NaN counts as infinite."""
    if got.shape != wanted.shape:
        raise InputError(f"relative_error: expected equal shapes, got {tuple(got.shape)} and {tuple(wanted.shape)}")
    if wanted.numel() == 0:
        return 0.0
    got, wanted = got.detach().double(), wanted.detach().double()
    gap, scale = (got - wanted).abs().max(), wanted.abs().max()
    error = float(gap / scale) if scale > 0 else float(gap)
    return error if error == error else float("inf")


def _evaluate(module: nn.Module, seed: int, *args: Tensor, **kwargs: Tensor) -> Tensor:
    """One call with the random state pinned, so that dropout's draw is the same where it may be the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        out: Tensor = module(*args, **kwargs)
    return out


@torch.no_grad()
def equivariance_error(module: nn.Module, x: Tensor, permutations: int = 8, seed: int = 0) -> float:
    """The largest ‖f(PX) − P f(X)‖_∞ / ‖f(X)‖_∞ over random permutations of the tokens.

    An invariant module (one output per set) is compared with f(X) itself. Dropout has to be off or zero: a random mask
    is not a function of X.
    """
    generator = torch.Generator().manual_seed(seed)
    wanted = _evaluate(module, seed, x)
    per_token = wanted.dim() == 3
    worst = 0.0
    for _ in range(permutations):
        permutation = torch.randperm(x.shape[1], generator=generator).to(x.device)
        got = _evaluate(module, seed, x[:, permutation])
        worst = max(worst, relative_error(got, wanted[:, permutation] if per_token else wanted))
    return worst


def assert_equivariant(module: nn.Module, x: Tensor, tolerance: float | None = None) -> None:
    """Raise unless `equivariance_error` is within the dtype's tolerance."""
    limit = tolerance_of("assert_equivariant", x.dtype) if tolerance is None else tolerance
    error = equivariance_error(module, x)
    if not error <= limit:
        raise PropertyViolatedError(
            f"{type(module).__name__} is not equivariant: error {error:.2e} > {limit:.0e}", error
        )


@dataclass(frozen=True)
class PaddingError:
    """What padding changed: `output` and `gradient` at real tokens (relative), `leak` the gradient at padding."""

    output: float
    gradient: float
    leak: float

    @property
    def worst(self) -> float:
        return max(self.output, self.gradient, self.leak)


def padding_error(
    module: nn.Module,
    x: Tensor,
    paddings: Iterable[int] = (1, 7, 64),
    fill: float = float("nan"),
    interleave: bool = False,
    seed: int = 0,
) -> PaddingError:
    """Run `module` on x and on x with padding tokens holding `fill`, appended or interleaved, and compare.

    The mask is passed as `attention_mask` (1 = keep) or `key_padding_mask` (True = ignore), whichever the module takes.
    """
    upstream_generator = torch.Generator().manual_seed(seed)
    batch, n = x.shape[:2]
    wanted, wanted_gradient, upstream = _with_gradient(module, x, None, None, upstream_generator, seed)
    output = gradient = leak = 0.0
    for padding in paddings:
        places = torch.arange(n)
        if interleave:
            generator = torch.Generator().manual_seed(seed + padding)
            places = torch.randperm(n + padding, generator=generator)[:n].sort().values
        padded = torch.full((batch, n + padding, *x.shape[2:]), fill, dtype=x.dtype, device=x.device)
        padded[:, places] = x.detach()
        keep = torch.zeros(batch, n + padding, dtype=torch.bool, device=x.device)
        keep[:, places] = True
        got, got_gradient, _ = _with_gradient(module, padded, keep, upstream, upstream_generator, seed)
        output = max(output, relative_error(got[:, places] if got.dim() == 3 else got, wanted))
        gradient = max(gradient, relative_error(got_gradient[:, places], wanted_gradient))
        lost = got_gradient[~keep].abs()
        leak = max(leak, float(lost.max()) if lost.numel() and not lost.isnan().any() else float(lost.isnan().any()))
    return PaddingError(output, gradient, leak)


def empty_row_error(module: nn.Module, x: Tensor, fill: float = float("nan"), seed: int = 0) -> float:
    """Put a row of nothing but padding on top of x: its output and its gradient must be 0, other rows as without it.

    The largest of: |output| and |input gradient| at that row, the relative change of the other rows, and infinity where
    a parameter's gradient is not finite.
    """
    generator = torch.Generator().manual_seed(seed)
    wanted, wanted_gradient, upstream = _with_gradient(module, x, None, None, generator, seed)
    leaf = torch.cat([torch.full_like(x[:1], fill), x.detach()]).requires_grad_(True)
    keep = torch.ones(leaf.shape[:2], dtype=torch.bool, device=x.device)
    keep[0] = False
    out = _evaluate(module, seed, leaf, **_mask_argument(module, keep))
    weights = [p for p in module.parameters() if p.requires_grad]
    spread = torch.cat([torch.ones_like(upstream[:1]), upstream])
    gradient, *others = torch.autograd.grad(out, [leaf, *weights], spread, allow_unused=True)
    at_empty = max(relative_error(part, torch.zeros_like(part)) for part in (out[0], gradient[0]))
    elsewhere = max(relative_error(out[1:], wanted), relative_error(gradient[1:], wanted_gradient))
    finite = all(bool(other.isfinite().all()) for other in others if other is not None)
    return max(at_empty, elsewhere) if finite else float("inf")


def assert_padding_safe(module: nn.Module, x: Tensor, tolerance: float | None = None) -> None:
    """Raise unless padding changes nothing at real tokens and gets zero gradient, and padding alone gives zeros.

    Padding is appended and interleaved, and holds NaN.
    """
    limit = tolerance_of("assert_padding_safe", x.dtype) if tolerance is None else tolerance
    for interleave in (False, True):
        error = padding_error(module, x, interleave=interleave)
        if not error.worst <= limit or error.leak:
            how = "interleaved" if interleave else "appended"
            raise PropertyViolatedError(f"{type(module).__name__}: {how} padding changes it: {error}", error.worst)
    empty = empty_row_error(module, x)
    if not empty <= limit:
        raise PropertyViolatedError(f"{type(module).__name__}: a row of padding alone gives error {empty:.2e}", empty)


def assert_certified(construction: Construction, seconds: float = 5.0) -> float:
    """Attack a construction; raise with the witness if an error exceeds its certificate, else return the worst."""
    from sumformer.certificates.attack import attack, violation

    found, total = attack(construction.target, construction.network, seconds=seconds), construction.certificate.total
    if found.worst > total:
        refuted, error = violation(found, total)
        if refuted:
            raise PropertyViolatedError(
                f"certified {total:.3e}, but the error is {error:.3e} at {found.witness}", error
            )
    return found.worst


def _with_gradient(
    module: nn.Module,
    x: Tensor,
    keep: Tensor | None,
    upstream: Tensor | None,
    generator: torch.Generator,
    seed: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, input gradient of ⟨output, upstream⟩ over real tokens, and the upstream used."""
    leaf = x.detach().clone().requires_grad_(True)
    out = _evaluate(module, seed, leaf, **({} if keep is None else _mask_argument(module, keep)))
    if upstream is None:
        upstream = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out)
    if keep is not None and out.dim() == 3:
        spread = torch.zeros_like(out)
        spread[keep] = upstream.flatten(0, 1)
        (grad,) = torch.autograd.grad(out, leaf, spread)
    else:
        (grad,) = torch.autograd.grad(out, leaf, upstream)
    return out.detach(), grad, upstream


def _mask_argument(module: nn.Module, keep: Tensor) -> dict[str, Tensor]:
    names = inspect.signature(module.forward).parameters
    if "attention_mask" in names:
        return {"attention_mask": keep.long()}
    if "key_padding_mask" in names:
        return {"key_padding_mask": ~keep}
    raise InputError(
        f"padding_error: {type(module).__name__}.forward takes neither attention_mask nor key_padding_mask"
    )

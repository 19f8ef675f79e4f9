"""x ↦ f(x, others)_0, N(x, others)_0 and |f − N| for fixed other tokens: data for the pictures of slices.

The own token x runs over a line (d = 1) or over two coordinates, the rest at the box's centre (d ≥ 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.certificates.certificate import Certificate
from sumformer.targets import reductions
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.theorems.constructed import Construction

TOKENS = 16  # where the target leaves the choice
WORK = 20_000_000  # pairs of tokens, about, for one slice
POINTS = {1: (33, 201), 2: (9, 41)}  # fewest and most points along an axis
SEED = 0
OWN_ROUNDING = 2.0**-44  # of f, relative to its largest value
TINY = 1e-18


@dataclass(frozen=True)
class Slice:
    """Values on a grid of own tokens: `axes` the coordinates' grids, f, N and |f − N| of shape (points, …)."""

    context: str
    others: Tensor
    axes: tuple[Tensor, ...]
    f: Tensor
    N: Tensor

    @property
    def error(self) -> Tensor:
        return (self.f - self.N).abs()

    @property
    def worst(self) -> float:
        return float(self.error.max())

    @property
    def floor(self) -> float:
        """Where a logarithmic scale of the error may begin: a power of ten, two decades below the worst."""
        seen = self.worst if 0 < self.worst < math.inf else TINY
        return 10.0 ** math.floor(math.log10(max(seen, TINY) / 100))


@dataclass(frozen=True)
class Slices:
    """One slice per context, all with n tokens in all; none when n is too large to draw, and then why."""

    n: int
    d: int
    width: int
    slices: tuple[Slice, ...]
    bound: float
    epsilon: float
    reason: str = ""

    @property
    def worst(self) -> float:
        return max((s.worst for s in self.slices), default=0.0)

    @property
    def violated(self) -> bool:
        """Whether an error exceeds the bound by more than float64 may err in f itself."""
        return any(not s.worst <= self.bound + OWN_ROUNDING * float(s.f.abs().max()) for s in self.slices)

    @property
    def top(self) -> float:
        """Where a scale of the error ends: the bound, or a place for it when it is 0."""
        return max(self.bound, 10 * max((s.floor for s in self.slices), default=TINY))


def run(construction: Construction) -> Slices:
    """Evaluate f and N along every slice."""
    f, certificate = construction.target, construction.certificate
    n = _tokens(f.tokens)
    work = (n * n if _leaves_out_own(f) else n) + _features(certificate)
    d = f.input_box.d
    free = min(d, 2)
    fewest, most = POINTS[free]
    points = min(most, math.floor((WORK / work) ** (1 / free)))
    head = (n, d, f.width)
    tail = (certificate.total, certificate.epsilon)
    if points < fewest:
        features = certificate.latent_dimension
        many = f"n = {n} tokens" if n > features else f"d' = {features} features"
        return Slices(*head, (), *tail, reason=f"{many} for every point of a picture are too many to draw here")
    low, high = corners(f.input_box, construction.network.outside)
    slices = []
    for context, others in _contexts(n - 1, low, high):
        axes = tuple(torch.linspace(0, 1, points, dtype=torch.float64) for _ in range(free))
        axes = tuple(_between(t, low[c], high[c]) for c, t in enumerate(axes))
        own = ((low + high) / 2).clamp(low, high).repeat(*(points,) * free, 1)
        for c, column in enumerate(torch.meshgrid(*axes, indexing="ij")):
            own[..., c] = column
        values = _evaluate(construction, own.reshape(-1, d), others)
        exact, network = (v.reshape(own.shape[:-1]) for v in values)
        slices.append(Slice(context, others, axes, exact, network))
    return Slices(*head, tuple(slices), *tail)


def corners(box: Box, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The box's corners, rounded inwards: the outermost tokens of this dtype that lie in the box."""
    low = [_inwards(a, dtype, math.inf, lambda x, a=a: x >= a) for a in box.lower]  # type: ignore[misc]
    high = [_inwards(b, dtype, -math.inf, lambda x, b=b: x <= b) for b in box.upper]  # type: ignore[misc]
    return torch.stack(low), torch.stack(high)


def _inwards(end: Fraction, dtype: torch.dtype, towards: float, inside: Callable[[Fraction], bool]) -> Tensor:
    value = torch.tensor(float(end), dtype=torch.float64).to(dtype)
    while not inside(Fraction(value.item())):
        value = torch.nextafter(value, torch.tensor(towards, dtype=dtype))
    return value


def _tokens(tokens: Tokens) -> int:
    return min(max(TOKENS, tokens.minimum), tokens.maximum)


def _features(certificate: Certificate) -> int:
    """What Σ of one sequence costs, in pairs of tokens: on a mesh a transform of all nodes, else d' products."""
    return 3 * certificate.latent_dimension if certificate.route == "mesh" else certificate.latent_dimension // 4


def _leaves_out_own(f: Target | OpaqueTarget) -> bool:
    return isinstance(f, Target) and any(part.kind.endswith("_others") for part in reductions(f.expression))


def _contexts(m: int, low: Tensor, high: Tensor) -> list[tuple[str, Tensor]]:
    """The m other tokens: drawn once and for all, and in two clusters at opposite corners."""
    if m == 0:
        return [("no other token", low.new_zeros(0, len(low)))]
    t = torch.rand(m, len(low), generator=torch.Generator().manual_seed(SEED), dtype=torch.float64)
    clusters = torch.where((torch.arange(m) % 2 == 0)[:, None], low, high)
    noun = "1 other token" if m == 1 else f"{m} other tokens"
    where = "at a corner" if m == 1 else "at two opposite corners"
    return [(f"{noun} drawn uniformly (seed {SEED})", _between(t, low, high)), (f"{noun} {where}", clusters)]


def _between(t: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """low + t·(high − low) in the tokens' dtype, never outside."""
    value = low.double() + t * (high.double() - low.double())
    return value.to(low.dtype).clamp(low, high)


@torch.no_grad()
def _evaluate(construction: Construction, own: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """f and N, component 0, at the token `own[g]` among `others`, for every g; f in float64 at the same tokens."""
    f, network = construction.target, construction.network
    sums = hasattr(network, "summarise")
    whole = not sums or _leaves_out_own(f)
    n = len(others) + 1
    exact, approximate = [], []
    for x in torch.split(own, max(1, min(128, 2**17 // n, 2**24 // max(1, construction.certificate.latent_dimension)))):
        query = x[:, None]
        X = torch.cat([query, others.expand(len(x), -1, -1)], dim=1)
        wide = X.double()
        value = f(wide)[:, 0] if whole or isinstance(f, OpaqueTarget) else f(query.double(), sources=wide)[:, 0]
        exact.append(value[:, 0])
        N = network.apply(query, network.summarise(X)) if sums else network(X)
        approximate.append(N[:, 0, 0].double())
    return torch.cat(exact), torch.cat(approximate)

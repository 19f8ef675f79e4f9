"""A sparse pattern (S): token k attends to A_k^l ⊆ [n] in step l = 0 … p−1, k itself always among them.

UNION         every head of every layer uses ∪_l A_k^l
SEQUENTIAL    layer t uses A_k^{t mod p}
MULTIHEAD     the heads of every layer are divided among the p steps
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.patterns.assumption import AssumptionReport, examine
from sumformer.nn.patterns.drawing import as_picture, as_text
from sumformer.nn.patterns.plan import plan
from sumformer.nn.patterns.step import Step, union
from sumformer.nn.pretrained import PretrainedModule

Composition = Literal["union", "sequential", "multihead"]


class Pattern(PretrainedModule, ABC):
    """A value: equal when its arguments are, and these do not change. Saved with the module that uses it."""

    _values: tuple[Any, ...] = ()

    def __init__(self, **arguments: int | bool) -> None:
        super().__init__()
        for name, value in arguments.items():
            setattr(self, name, value)
        self._values = tuple(arguments.items())

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """A^0, …, A^{p−1}."""

    @property
    def p(self) -> int:
        return len(self.steps)

    def step(self, step: int | None = None) -> Step:
        """A^l for l = step mod p; None is the union of all."""
        return union(self.steps) if step is None else self.steps[step % self.p]

    def matrix(self, n: int, step: int | None = None, is_causal: bool = False) -> Tensor:
        """(n, n) boolean, [k, j] = j ∈ A_k: all n² answers. In causal order row k is that of the tokens up to k."""
        return self.step(step).matrix(_length(self, n), is_causal)

    def edges(self, n: int, step: int | None = None) -> tuple[Tensor, Tensor]:
        """All (k, j) with j ∈ A_k, as two lists in order of k, then j; O(connections)."""
        return edges(self.step(step), _length(self, n))

    def neighbours(self, k: int, n: int, step: int | None = None) -> list[int]:
        """A_k of token k = 0 … n − 1, sorted."""
        tokens = torch.arange(_length(self, n))
        if not isinstance(k, int) or isinstance(k, bool) or not 0 <= k < n:
            raise InputError(f"{type(self).__name__}.neighbours: expected k in 0 … {n - 1}, got {k!r}")
        inside = self.step(step).contains(torch.tensor([[k]]), tokens.unsqueeze(0), n)
        return [int(j) for j in tokens[inside[0]]]

    def connections(self, n: int, step: int | None = None) -> int:
        """Σ_k |A_k|, in time and memory O(connections)."""
        return _count(self.step(step), _length(self, n))

    def density(self, n: int, step: int | None = None) -> float:
        """connections / n²."""
        return self.connections(n, step) / n**2

    def assumption(self, n: int) -> AssumptionReport:
        """Does the pattern meet Assumption 1 of S for n tokens, and if not, why."""
        return examine([step.matrix(_length(self, n)).numpy() for step in self.steps])

    def draw(self, n: int = 32, step: int | None = None) -> str:
        """The matrix as text, one character for each pair."""
        return f"{self}, n = {n}: {self.connections(n, step)} connections\n{as_text(self.matrix(n, step))}"

    def picture(self, n: int = 64, step: int | None = None, ax: Any = None) -> Any:
        """The matrix on matplotlib axes: `ax`, or new ones. Returns the axes."""
        return as_picture(self.matrix(n, step), f"{self}, n = {n}", ax)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._values)

    def __setattr__(self, name: str, value: Any) -> None:
        if any(name == argument for argument, _ in self._values):
            raise AttributeError(f"{type(self).__name__}.{name} does not change; make a new {type(self).__name__}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values == self._values

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._values))


def steps_of_heads(pattern: Pattern, composition: Composition, nhead: int, layer: int = 0) -> tuple[Step, ...]:
    """The step that each head of layer `layer` uses."""
    if composition == "union":
        return (pattern.step(),) * nhead
    if composition == "sequential":
        return (pattern.step(layer),) * nhead
    if composition != "multihead":
        raise InputError(f"steps_of_heads: expected composition in {get_args(Composition)}, got {composition!r}")
    if nhead < pattern.p:
        raise InputError(f"steps_of_heads: expected a head for each of the {pattern.p} steps, got nhead = {nhead}")
    return tuple(pattern.step(head * pattern.p // nhead) for head in range(nhead))


def check_sizes(where: str, least: int, **sizes: int) -> None:
    """Every size must be an integer ≥ `least`; all that are not are named at once."""
    wrong = [
        f"{name} = {size!r}"
        for name, size in sizes.items()
        if not isinstance(size, int) or isinstance(size, bool) or size < least
    ]
    if wrong:
        raise InputError(f"{where}: expected integers ≥ {least}, got {', '.join(wrong)}")


def _length(pattern: Pattern, n: int) -> int:
    check_sizes(type(pattern).__name__, 1, n=n)
    return n


def edges(step: Step, n: int) -> tuple[Tensor, Tensor]:
    """All (k, j), read off the plan that the computation uses."""
    layout = plan(step, n, torch.device("cpu"))
    pairs = [torch.stack(torch.meshgrid(torch.arange(min(step.rows, n)), torch.arange(n), indexing="ij")).flatten(1)]
    k, place = (~torch.cat(layout.blocked, -1)[0, 0, :n]).nonzero().T
    pairs.append(torch.stack([k, layout.keys()[0, k, place]])[:, k >= step.rows])
    both = torch.cat(pairs, 1)
    both = both[:, (both[0] * n + both[1]).argsort()]
    return both[0], both[1]


def _count(step: Step, n: int) -> int:
    layout = plan(step, n, torch.device("cpu"))
    rows = min(step.rows, n)
    return rows * n + sum(int((~blocked[0, 0, rows:n]).sum()) for blocked in layout.blocked)

"""One forward pass in words and numbers: the parts of a network, its named values, and each beside the ideal one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sumformer.theorems.constructed import Construction


@dataclass(frozen=True)
class BlockLine:
    """One block, or φ, Σ, ψ of a Sumformer: hidden units, what it is made of, values complete after it and where."""

    block: int | str
    hidden: int | None
    gadgets: dict[str, int]
    complete: tuple[tuple[str, int], ...] = ()
    attention: bool = False


@dataclass(frozen=True)
class ValueLine:
    """One value at the first token: what the network holds, what it should be, how far it may be off.

    `coordinate` is that of the stream after `block`, or of Σ; a mean stands in X + Att(X) of `block` alone. `allowed`
    None: only the output carries a bound. `formula` says what it is in the names of other values, if the ledger does.
    """

    name: str
    op: str
    coordinate: int | None
    block: int | str
    computed: float
    ideal: float
    allowed: float | None
    formula: str = ""

    @property
    def violated(self) -> bool:
        return self.allowed is not None and not abs(self.computed - self.ideal) <= self.allowed * (1 + 1e-9) + 1e-13


@dataclass(frozen=True)
class Explanation:
    """Parts, values at the first token, outputs beside the target, and the tensors for the pictures.

    `ideal_outputs` are those of the ideal program. A Transformer has the residual `stream` (blocks + 1, width) of the
    first token and its `attention` matrix in block `attention_at`; a Sumformer the `features` φ(x_j), (n, d'), or the
    `centres` (n, d) of the cells in which its tokens lie.
    """

    construction: Construction
    X: Tensor
    blocks: tuple[BlockLine, ...]
    values: tuple[ValueLine, ...]
    outputs: Tensor
    wanted: Tensor
    ideal_outputs: Tensor
    notes: tuple[str, ...] = ()
    stream: Tensor | None = None
    attention: Tensor | None = None
    attention_at: int = 0
    features: Tensor | None = None
    centres: Tensor | None = None

    @property
    def violations(self) -> list[str]:
        """Values farther from their ideal than they may be, and outputs than is certified: there must be none.

        f is evaluated in float64, which is allowed 10 digits.
        """
        names, c = [v.name for v in self.values if v.violated], self.construction.certificate
        room = c.total * (1 + 1e-9) + 1e-10 * (1 + self.wanted.abs().amax())
        certified = c.p is not None or bool(((self.outputs - self.wanted).abs() <= room).all())
        return names if certified else [*names, "the output"]

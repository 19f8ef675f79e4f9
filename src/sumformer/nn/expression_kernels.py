"""The two passes of an `ExpressionSumformer` through the kernels of `sumformer.kernels.expression`.

Same tree, same recurrences, same order of the target's own operations; inside a group of the tree, and inside the
contraction of one token, sums run in another order, which the certificate's count allows.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sumformer.errors import NotSupportedError
from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import transformed, watched
from sumformer.kernels.evaluate_expression import evaluate_expression, evaluated
from sumformer.kernels.feature_sums import CLAMPED, feature_sums, summed
from sumformer.nn.expression_parts import Channel, Kernel
from sumformer.nn.scalar_program import ScalarProgram
from sumformer.nn.summary import Summary
from sumformer.nn.token_sum import levels, sum_groups

if TYPE_CHECKING:
    from sumformer.nn.expression_sumformer import ExpressionSumformer

SPAN = 1024
"""Tokens that one row of the kernel's sums stands for; must be a power of the group of the network's tree."""
MOST_TERMS = 1024  # Q_α a token meets, all unrolled
MOST_COLUMNS = 1024
_WIDTH = 16


class ExpressionKernels:
    """What the kernels need to know of one network, made once."""

    def __init__(self, network: ExpressionSumformer) -> None:
        """Raises NotSupportedError where the kernels do not reach."""
        d = network.d
        self.group, self.dtype = network.group, network.outside
        self.spans = _levels_in_a_span(network.group)
        self.y_tops, self.x_tops = list(network.y_degrees), list(network.x_degrees)
        self.axes = [_axes(p.parts) for p in network._products]
        self.flat_axes = [number for axes in self.axes for number in (len(axes), *(v for pair in axes for v in pair))]
        self.series = [p.series_count for p in network._products]
        terms = sum(prod(k + 1 for _, k in a) * s for a, s in zip(self.axes, self.series, strict=True))
        columns = [len(c.suffixes) for c in network._channels]
        if not network._channels:
            raise NotSupportedError("ExpressionKernels: nothing is summed")
        if d > 4 or terms > MOST_TERMS or max(self.y_tops) > 31 or max(columns, default=0) > MOST_COLUMNS:
            raise NotSupportedError(
                f"ExpressionKernels: {d} coordinates, {terms} terms, {columns} columns are too many"
            )
        self.factors: list[tuple[ScalarProgram, int]] = []
        for channel in network._channels:
            program = ScalarProgram(d)
            place = -1 if channel.is_one else program.add(channel.factor, range(d), [])[0]
            self.factors.append((program, place))
        self.psi, self.results = _psi(network, d, self.series)
        self._moved: dict[torch.device, list[Tensor]] = {}

    def summarise(
        self, network: ExpressionSumformer, z: Tensor, weights: Tensor | None, keep: Tensor | None, depth: int
    ) -> Summary:
        """Σ and the count; without weights and padding no buffer of n numbers is made."""
        if weights is None and keep is None:
            count = torch.full((z.shape[0],), float(z.shape[1]), dtype=torch.float64, device=z.device)
            return Summary(self.sums(network, z, None, depth), count)
        w = network._weights(z, weights, keep)
        return Summary(self.sums(network, network._padded(z, keep), w, depth), w.double().sum(dim=1))

    def sums(self, network: ExpressionSumformer, z: Tensor, w: Tensor | None, depth: int) -> Tensor:
        """(batch, n, d) → Σ, (batch, d'); `depth` levels of the tree in all."""
        tensors = self._tensors(network, z.device)[1:]
        w = None if w is None else w.contiguous()
        totals = []
        run = feature_sums if watched(z) else summed
        for i, (program, place) in enumerate(self.factors):
            degrees, blocks, constants, index = tensors[4 * i : 4 * i + 4]
            partial = run(
                z.contiguous(),
                w,
                network._constant("centre_", z),
                network._constant("inverse_radius", z),
                degrees,
                blocks,
                constants,
                1,
                self.y_tops,
                CLAMPED,
                program.code,
                program.left,
                program.right,
                place,
                _WIDTH,
                SPAN,
            )
            rows = partial.flatten(2).index_select(-1, index).to(network.inside)
            totals.append(sum_groups(rows, self.group, depth - self.spans))
        return totals[0] if len(totals) == 1 else torch.cat(totals, dim=-1)

    def psi_of(self, network: ExpressionSumformer, x: Tensor, counts: Tensor, contracted: list[Tensor]) -> Tensor:
        """ψ(x_i, Σ), (batch, n, width); one Σ serves all x, as it does in the definition."""
        batch = x.shape[0]
        flat = [q.flatten(1) for q in contracted]
        q = (flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)).expand(batch, -1).contiguous()
        run = evaluate_expression if watched(x) else evaluated
        out: Tensor = run(
            x.contiguous(),
            q,
            counts.to(network.inside).expand(batch).contiguous(),
            network._constant("centre_", x),
            network._constant("inverse_radius", x),
            self._tensors(network, x.device)[0],
            self.x_tops,
            self.flat_axes,
            self.series,
            self.psi.code,
            self.psi.left,
            self.psi.right,
            self.results,
            self.dtype,
        )
        return out

    def _tensors(self, network: ExpressionSumformer, device: torch.device) -> list[Tensor]:
        """The constants of ψ; for each channel the degrees, blocks and constants of its sums, and where they lie."""
        if device not in self._moved:
            made = [_numbers(self.psi, network.inside)]
            for channel, (program, _) in zip(network._channels, self.factors, strict=True):
                made += [*_columns(channel), _numbers(program, network.inside)]
                made.append(_places(channel))
            moved = [tensor.to(device) for tensor in made]
            if any(type(tensor) is not Tensor for tensor in moved):  # under a mode that makes no numbers
                return moved
            self._moved[device] = moved
        return self._moved[device]

    def __getstate__(self) -> dict[str, Any]:
        """Without what lies on devices."""
        return self.__dict__ | {"_moved": {}}


def kernels_for(network: ExpressionSumformer, x: Tensor, *others: Tensor | None) -> ExpressionKernels | None:
    """The kernels, where they run: on x's device, without derivatives, for a formula they can express.

    `others` are what a gradient might be wanted of beside x. A compiler meets them if a call was made before.
    """
    if not runs_on(x) or transformed():
        return None
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, *others, *network.coefficients)):
        return None
    known = network.__dict__.get("_kernels_made")
    if known is None and torch.compiler.is_compiling():
        return None
    if known is None:
        try:
            known = ExpressionKernels(network)
        except NotSupportedError as reason:
            known = str(reason)
        network.__dict__["_kernels_made"] = known
    return known if isinstance(known, ExpressionKernels) else None


def _levels_in_a_span(group: int) -> int:
    """L with group^L = SPAN."""
    count = levels(SPAN, group)
    if group**count != SPAN:
        raise NotSupportedError(f"ExpressionKernels: {SPAN} is no power of the group {group}")
    return count


def _columns(channel: Channel) -> tuple[Tensor, Tensor]:
    """Degrees (d, columns) of the rows T_0, T_1, … of the first coordinate and of the suffixes, and all block pairs."""
    rows, suffixes = channel.degrees[0] + 1, len(channel.suffixes)
    padded = max(_blocks(rows), _blocks(suffixes)) * _WIDTH
    degrees = torch.zeros(channel.d, padded, dtype=torch.int32)
    degrees[0, :rows] = torch.arange(rows, dtype=torch.int32)
    for c in range(1, channel.d):
        degrees[c, :suffixes] = torch.tensor(channel.suffix_column(c), dtype=torch.int32)
    pairs = [(i, j) for i in range(_blocks(rows)) for j in range(_blocks(suffixes))]
    return degrees, torch.tensor(pairs, dtype=torch.int32)


def _places(channel: Channel) -> Tensor:
    """Where each feature of the channel lies among the blocks' sums."""
    suffixes, across = len(channel.suffixes), _blocks(len(channel.suffixes))
    out = []
    for flat in channel.flat_index():
        i, j = divmod(flat, suffixes)
        pair = (i // _WIDTH) * across + j // _WIDTH
        out.append((pair * _WIDTH + i % _WIDTH) * _WIDTH + j % _WIDTH)
    return torch.tensor(out, dtype=torch.long)


def _blocks(columns: int) -> int:
    return (columns + _WIDTH - 1) // _WIDTH


def _axes(parts: tuple[Kernel, ...]) -> list[tuple[int, int]]:
    return [(c, degree) for kernel in parts for c, degree in zip(kernel.coordinates, kernel.x_degrees, strict=True)]


def _numbers(program: ScalarProgram, dtype: torch.dtype) -> Tensor:
    return torch.tensor(program.constants or [0.0], dtype=torch.float64).to(dtype)


def _psi(network: ExpressionSumformer, d: int, series: list[int]) -> tuple[ScalarProgram, list[int]]:
    """The instructions of ψ on (x, V, count), and the places of its coordinates."""
    program = ScalarProgram(d + sum(series) + 1)
    count, token = d + sum(series), range(d)
    starts = [d + sum(series[:p]) for p in range(len(series))]
    reduced: list[list[int]] = []
    own: dict[int, int] = {}
    for reduction in network._reductions:
        if reduction.kind.endswith("others"):
            raise NotSupportedError("ExpressionKernels: sums over the others")
        places = []
        for terms in reduction.components:
            parts = []
            for term in terms:
                if term.own not in own:
                    own[term.own] = program.add(network._own[term.own], token, reduced)[0]
                parts.append(program.emit(2, own[term.own], starts[term.product] + term.series))
            total = program.total(parts) if parts else program.constant(0.0)
            places.append(total if reduction.kind == "mean" else program.emit(2, count, total))
        reduced.append(places)
    results = program.add(network._program, token, reduced)
    return program, results * network.width if len(results) == 1 else results

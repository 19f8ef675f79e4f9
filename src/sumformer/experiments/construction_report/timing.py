"""n ↦ seconds for N(X) and for f(X) as written, both measured here and now: O(n·d') beside O(n²)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

import torch
from torch import Tensor

from sumformer.experiments.construction_report.slices import corners
from sumformer.experiments.report.drawing import BLUE, GREY, ORANGE, PLAIN, Picture, decades, grid, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import count, duration, nearest
from sumformer.targets import reductions
from sumformer.targets.domain import Tokens
from sumformer.targets.target import Target
from sumformer.targets.torch_evaluation import own_parts
from sumformer.theorems.constructed import Construction

FEWEST, MOST = 64, 2**17
MOST_PAIRS = 2**32  # of an exact n: more is not tried
FEWEST_REPETITIONS, REPETITIONS = 3, 9


@dataclass(frozen=True)
class Timing:
    """Medians of a few repetitions, n → seconds; `pairwise` whether f meets all pairs of tokens as it is written."""

    network: dict[int, float]
    target: dict[int, float]
    pairwise: bool
    exact: bool
    dtype: str
    threads: int

    @property
    def common(self) -> int | None:
        """The largest n at which both were measured."""
        return max(self.network.keys() & self.target.keys(), default=None)

    @property
    def ratio(self) -> float | None:
        """Seconds of f over seconds of N there."""
        return None if self.common is None else self.target[self.common] / self.network[self.common]


@torch.no_grad()
def run(construction: Construction, budget: float) -> Timing:
    """Doubling n: f until its repetitions would take more than budget/4, N up to 2^17; each within half the budget."""
    f, network = construction.target, construction.network
    pairwise = isinstance(f, Target) and _pairwise(f)
    ns = counts(f.tokens)
    low, high = corners(f.input_box, network.outside)
    generator = torch.Generator().manual_seed(0)

    def tokens(n: int) -> Tensor:
        t = torch.rand(1, n, f.input_box.d, generator=generator, dtype=torch.float64)
        return (low.double() + t * (high.double() - low.double())).to(low.dtype).clamp(low, high)

    feasible = [n for n in ns if not pairwise or n * n <= MOST_PAIRS]
    return Timing(
        network=_measure(network, tokens, ns, budget, growth=2),
        target=_measure(f, tokens, feasible, budget, growth=4 if pairwise else 2),
        pairwise=pairwise,
        exact=f.tokens.exact,
        dtype=str(network.outside).removeprefix("torch."),
        threads=torch.get_num_threads(),
    )


def _pairwise(f: Target) -> bool:
    """Whether x and y meet in a term of f."""
    own = own_parts(f.expression)
    return any(part.body in own for part in reductions(f.expression))


def counts(tokens: Tokens) -> list[int]:
    """The n to measure: 64, 128, … 2^17 as far as they are allowed, and the most that is."""
    if tokens.exact:
        return [tokens.minimum]
    doubling = [2**k for k in range(FEWEST.bit_length() - 1, MOST.bit_length())]
    allowed = [n for n in doubling if tokens.allows(n)]
    if tokens.maximum < MOST and tokens.maximum not in allowed:
        allowed.append(tokens.maximum)
    return allowed or [tokens.minimum]


def _measure(
    evaluate: Callable[[Tensor], Tensor], tokens: Callable[[int], Tensor], ns: list[int], budget: float, growth: int
) -> dict[int, float]:
    """n → median seconds, as long as the next few repetitions are expected within budget/4 and all within budget/2."""
    if ns:
        evaluate(tokens(ns[0]))  # warm up
    start, medians = time.perf_counter(), dict[int, float]()
    for n in ns:
        if medians:
            expected = FEWEST_REPETITIONS * growth * list(medians.values())[-1]
            if expected > budget / 4 or time.perf_counter() - start + expected > budget / 2:
                break
        X = tokens(n)
        seconds = [_seconds(evaluate, X)]
        while len(seconds) < FEWEST_REPETITIONS or (len(seconds) < REPETITIONS and sum(seconds) < budget / 50):
            seconds.append(_seconds(evaluate, X))
        medians[n] = statistics.median(seconds)
    return medians


def _seconds(evaluate: Callable[[Tensor], Tensor], X: Tensor) -> float:
    start = time.perf_counter()
    evaluate(X)
    return time.perf_counter() - start


def plot(timing: Timing) -> Picture:
    """Two curves on logarithmic scales, or two bars where n is fixed."""
    return _bars(timing) if len(timing.network) == 1 else _curves(timing)


def names(timing: Timing) -> tuple[str, str]:
    """The network and f, as the legend calls them."""
    return "network N", "f, all pairs" if timing.pairwise else "f as written (no pairs in it)"


def verdict(timing: Timing) -> str:
    """The ratio in words."""
    if timing.ratio is None or timing.common is None:
        return "f was too slow to be measured here"
    return f"N {_factor(timing)} at n = {count(timing.common)}"


def _factor(timing: Timing) -> str:
    ratio = timing.ratio or 1.0
    return f"{nearest(max(ratio, 1 / ratio), 2)}× {'faster' if ratio >= 1 else 'slower'}"


def _curves(timing: Timing) -> Picture:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure = new_figure(5.2, 3.7)
    axes = figure.subplots()
    for times, colour, label in zip((timing.network, timing.target), (ORANGE, BLUE), names(timing), strict=True):
        axes.plot(list(times), list(times.values()), "o-", color=colour, markersize=4, label=label)
    n = timing.common
    if n is not None:
        ends = sorted((timing.network[n], timing.target[n]))
        axes.plot([n, n], ends, color=GREY, linewidth=1.2, linestyle=":")
        middle = (ends[0] * ends[1]) ** 0.5
        axes.annotate(_factor(timing), (n, middle), va="center", ha="center", fontsize=9, bbox=PLAIN)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high)))
    decades(axes.yaxis)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: count(round(v))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: duration(float(v))))
    axes.set_xlabel("number of tokens n")
    axes.set_ylabel("time for one sequence")
    axes.legend(fontsize=9, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    grid(axes)
    return picture(figure, f"Time against the number of tokens, both logarithmic: {verdict(timing)}.")


def _bars(timing: Timing) -> Picture:
    figure = new_figure(5.2, 1.5)
    axes = figure.subplots()
    rows = [
        (k, c, t) for k, c, t in zip(names(timing), (ORANGE, BLUE), (timing.network, timing.target), strict=True) if t
    ]
    for place, (_, colour, times) in enumerate(rows):
        milliseconds = 1000 * next(iter(times.values()))
        axes.barh(place, milliseconds, color=colour, height=0.6)
        shown = duration(milliseconds / 1000)
        axes.annotate(shown, (milliseconds, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.2)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"milliseconds for a sequence of n = {count(next(iter(timing.network)))}", fontsize=9)
    times_text = "; ".join(f"{name}: {duration(next(iter(times.values())))}" for name, _, times in rows)
    return picture(figure, f"Time for one sequence of {next(iter(timing.network))} tokens. {times_text}.")

"""‖f(X) − N(X)‖_∞ ≤ Σ terms = total ≤ ε, and the worst error the attack found, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Protocol

from sumformer.certificates.certificate import Certificate
from sumformer.experiments.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PLAIN,
    PURPLE,
    RED,
    Picture,
    decades,
    picture,
)
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest, rounded_up

COLOURS = {"proved": BLUE, "enclosed": GREEN, "rounding": PURPLE, "certified": "#333333", "asked": GREY}


class Attack(Protocol):
    """What a report shows of an attack."""

    @property
    def worst(self) -> float: ...
    @property
    def trials(self) -> int: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Bar:
    """One length of the picture, and where it comes from."""

    name: str
    kind: str
    value: float


@dataclass(frozen=True)
class Budget:
    """The terms in the certificate's order, total, ε, and what was found."""

    bars: tuple[Bar, ...]
    violated: bool


def run(certificate: Certificate, attack: Attack | None) -> Budget:
    """The certificate's own numbers, nothing recomputed."""
    bars = [Bar(t.name, t.kind, t.bound) for t in certificate.terms]
    bars += [Bar("certified total", "certified", certificate.total), Bar("ε", "asked", certificate.epsilon)]
    if attack is None:
        return Budget(tuple(bars), False)
    bars.append(Bar("worst error the attack found", "measured", attack.worst))
    violated = not attack.worst <= certificate.total
    return Budget(tuple(bars), violated)


def plot(budget: Budget) -> Picture:
    """Bars on a logarithmic scale: where they end is the number, how long they are is not."""
    figure = new_figure(5.2, 0.42 * len(budget.bars) + 0.75)
    axes = figure.subplots()
    positive = [b.value for b in budget.bars if b.value > 0 and isfinite(b.value)]
    low = 10.0 ** (floor(log10(min(positive))) - 1) if positive else 1e-16
    high = max(positive, default=1.0)
    for place, bar in enumerate(budget.bars):
        colour = COLOURS.get(bar.kind, RED if budget.violated else ORANGE)
        end = max(bar.value, low) if isfinite(bar.value) else 10 * high
        axes.barh(place, end - low, left=low, height=0.62, color=colour)
        axes.annotate(
            _shown(bar), (end, place), (5, 0), textcoords="offset points", va="center", fontsize=9, bbox=PLAIN
        )
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.16)  # room for the label of the longest bar
    axes.set_ylim(len(budget.bars) - 0.5, -0.5)
    names = [f"{b.name}\n({b.kind})" if b.kind in ("proved", "enclosed") else b.name for b in budget.bars]
    axes.set_yticks(
        range(len(names)), [n.replace("dropped and rounded ", "dropped, rounded ") for n in names], fontsize=9
    )
    axes.tick_params(axis="y", length=0)
    axes.axvline(
        budget.bars[-1 if budget.bars[-1].kind == "asked" else -2].value,
        color=GREY,
        linewidth=1,
        linestyle=":",
        zorder=0,
    )
    axes.set_xlabel("error (logarithmic: compare the ends)", fontsize=9)
    decades(axes.xaxis)
    words = "; ".join(f"{b.name}: {_shown(b)}" for b in budget.bars)
    return picture(figure, f"Bars on a logarithmic scale. {words}.")


def _shown(bar: Bar) -> str:
    """A bound is rounded up, what was asked for or measured is not."""
    return nearest(bar.value) if bar.kind in ("asked", "measured") else rounded_up(bar.value)

"""Pictures of a fit: epoch ↦ loss, y ↦ ŷ (or labels against labels), errors of sets, the worst sets."""

from __future__ import annotations

import torch

from sumformer.experiments.report.drawing import BLUE, GREY, ORANGE, Picture, decades, grid, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest
from sumformer.learn.evaluation import Examination, worst_places
from sumformer.learn.fitted import Fitted

MOST_POINTS = 2000
MOST_OUTPUTS = 3
MOST_WORST = 3
MOST_CELLS = 20


def curve(fitted: Fitted) -> Picture:
    """Both losses against the epoch."""
    figure = new_figure(6.2, 3.2)
    axes = figure.subplots()
    epochs = [h["epoch"] for h in fitted.history]
    for key, colour in (("train", BLUE), ("validation", ORANGE)):
        axes.plot(epochs, [h[key] for h in fitted.history], color=colour, linewidth=1.2, label=key)
    best = next(h for h in fitted.history if h["epoch"] == fitted.best_epoch)
    axes.plot([best["epoch"]], [best["validation"]], "o", color=ORANGE, markersize=7, markerfacecolor="none")
    if min(h[k] for h in fitted.history for k in ("train", "validation")) > 0:
        axes.set_yscale("log")
        decades(axes.yaxis)
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    axes.legend(frameon=False, fontsize=9)
    grid(axes)
    words = f"Loss against epoch. Best validation loss {nearest(best['validation'])} at epoch {best['epoch']}."
    return picture(figure, words)


def predictions(fitted: Fitted, held: Examination) -> list[Picture]:
    """What was predicted against what was true, and how the errors of sets are distributed."""
    shown = [_confusion(fitted, held)] if fitted.task.classes is not None else _scatter(fitted, held)
    return [*shown, _distribution(held)]


def _scatter(fitted: Fitted, held: Examination) -> list[Picture]:
    if held.sets.y is None:
        return []
    real = held.sets.keep if fitted.task.per_token else torch.ones(len(held.sets), dtype=torch.bool)
    y, out = held.sets.y[real], held.outputs[real]
    step = max(1, len(y) // MOST_POINTS)
    pictures = []
    for k in range(min(fitted.task.k, MOST_OUTPUTS)):
        figure = new_figure(3.6, 3.4)
        axes = figure.subplots()
        axes.plot(y[::step, k], out[::step, k], ".", color=BLUE, markersize=2.5, alpha=0.6)
        ends = [float(y[:, k].min()), float(y[:, k].max())]
        axes.plot(ends, ends, color=GREY, linewidth=1)
        axes.set_xlabel("y")
        axes.set_ylabel("predicted")
        grid(axes)
        name = f"output {k}" if fitted.task.k > 1 else "the output"
        pictures.append(picture(figure, f"Predicted against true values of {name}.", name))
    return pictures


def _confusion(fitted: Fitted, held: Examination) -> Picture:
    classes = fitted.task.classes or ()
    size = len(classes)
    real = held.sets.keep if fitted.task.per_token else torch.ones(len(held.sets), dtype=torch.bool)
    y = torch.zeros(0, dtype=torch.long) if held.sets.y is None else held.sets.y[real]
    table = torch.zeros(size, size).index_put_((y, held.outputs.argmax(-1)[real]), torch.ones(1), accumulate=True)
    figure = new_figure(4.0, 3.6)
    axes = figure.subplots()
    shares = table / table.sum(1, keepdim=True).clamp(min=1)
    axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    if size <= MOST_CELLS:
        axes.set_xticks(range(size), [str(c) for c in classes], fontsize=8, rotation=90 if size > 10 else 0)
        axes.set_yticks(range(size), [str(c) for c in classes], fontsize=8)
        for i, j in table.nonzero().tolist():
            colour = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, f"{int(table[i, j])}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    right = float(table.trace() / table.sum().clamp(min=1))
    return picture(figure, f"Counts of true against predicted labels; {nearest(100 * right)} % on the diagonal.")


def _distribution(held: Examination) -> Picture:
    figure = new_figure(3.6, 3.4)
    axes = figure.subplots()
    axes.hist(held.set_errors.numpy(), bins=30, color=BLUE)
    axes.set_xlabel("error of a set")
    axes.set_ylabel("sets")
    grid(axes)
    middle, top = float(held.set_errors.median()), float(held.set_errors.max())
    return picture(figure, f"Histogram of the errors of sets: median {nearest(middle)}, largest {nearest(top)}.")


def worst(fitted: Fitted, held: Examination) -> list[Picture]:
    """The tokens of the worst sets: in the plane of their first two coordinates, or along their only one."""
    pictures = []
    for place in worst_places(held.set_errors, MOST_WORST):
        keep = held.sets.keep[place]
        x = held.sets.x[place][keep]
        errors = held.token_errors[place].expand(len(keep))[keep] if fitted.task.per_token else None
        figure = new_figure(3.6, 3.1)
        axes = figure.subplots()
        if fitted.task.per_token and fitted.task.classes is None and held.sets.y is not None and x.shape[1] == 1:
            axes.plot(x[:, 0], held.sets.y[place][keep][:, 0], "o", color=GREY, markersize=5, label="y")
            axes.plot(x[:, 0], held.outputs[place][keep][:, 0], "x", color=ORANGE, markersize=5, label="predicted")
            axes.legend(frameon=False, fontsize=8)
            axes.set_xlabel("x")
        else:
            second = x[:, 1] if x.shape[1] > 1 else torch.zeros(len(x))
            colours = BLUE if errors is None else errors.sqrt().numpy()
            drawn = axes.scatter(x[:, 0], second, c=colours, s=18, cmap=None if errors is None else "viridis")
            if errors is not None:
                figure.colorbar(drawn, label="error")
            axes.set_xlabel("x[0]")
            axes.set_ylabel("x[1]" if x.shape[1] > 1 else "")
        caption = f"set {int(held.places[place])}, error {nearest(float(held.set_errors[place]))}"
        pictures.append(picture(figure, f"Tokens of {caption}.", caption))
    return pictures

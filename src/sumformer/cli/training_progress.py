"""A line on standard error while training: epoch, losses, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sumformer.cli.output import messages
from sumformer.learn.training import Progress


@contextmanager
def shown_progress(prefix: str = "") -> Iterator[Callable[[Progress], None]]:
    """Where standard error is a terminal the line is rewritten; elsewhere one is printed every tenth of the way."""
    tenth = [-1]
    with messages.status(f"{prefix}preparing …") as status:

        def report(progress: Progress) -> None:
            if messages.is_terminal:
                status.update(prefix + line(progress))
            elif progress.batch == 0 and (done := 10 * progress.epoch // progress.epochs) > tenth[0]:
                tenth[0] = done
                messages.print(prefix + line(progress), soft_wrap=True)

        yield report


def line(progress: Progress) -> str:
    """epoch 12 of 200, loss 0.031 (validation 0.035, best at 11), 8 s left."""
    left = f"{progress.seconds_left:.0f} s left at most"
    losses = (
        f"loss {progress.train_loss:.4g} (validation {progress.validation_loss:.4g}, best at {progress.best_epoch})"
    )
    return f"epoch {progress.epoch} of {progress.epochs}, {losses}, {left}"

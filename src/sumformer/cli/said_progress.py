"""How far a long run is, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sumformer.cli.output import messages

SECONDS = 10.0


@contextmanager
def said_progress() -> Iterator[Callable[[str], None]]:
    """Where standard error is a terminal one line is rewritten; elsewhere one is printed every ten seconds."""
    last = [-SECONDS]
    began = time.monotonic()
    with messages.status("…") as status:

        def tell(text: str) -> None:
            now = time.monotonic() - began
            if messages.is_terminal:
                status.update(text)
            elif now - last[0] >= SECONDS:
                last[0] = now
                messages.print(text, markup=False, soft_wrap=True)

        yield tell

"""The target of a formula given to a command; the name of one in the gallery is answered by its formula."""

from __future__ import annotations

from typing import Any

from sumformer.errors import InputError
from sumformer.targets import Target
from sumformer.targets import target as make_target
from sumformer.targets.gallery import GALLERY


def formula_target(expression: str, **domain: Any) -> Target:
    """As `sumformer.target`."""
    entry = GALLERY.get(expression.strip())
    if entry is not None:
        formula = entry.source_for(domain.get("d", 1))
        raise InputError(f"{entry.name} is the name of a target in the gallery; give its formula: '{formula}'")
    found: Target = make_target(expression, **domain)
    return found

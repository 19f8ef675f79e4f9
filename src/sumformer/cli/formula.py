"""The target of a formula given to a command; the name of one in the gallery is answered by its formula."""

from __future__ import annotations

from typing import Any

from sumformer.targets import Target
from sumformer.targets import target as make_target
from sumformer.targets.gallery import refuse_name


def formula_target(expression: str, **domain: Any) -> Target:
    """As `sumformer.target`."""
    refuse_name(expression, domain.get("d", 1))
    found: Target = make_target(expression, **domain)
    return found

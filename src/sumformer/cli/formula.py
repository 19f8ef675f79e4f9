"""The target of a formula given to a command; the name of one in the gallery is answered by its formula."""

from __future__ import annotations

from typing import Any

from sumformer.targets import Target
from sumformer.targets import target as make_target
from sumformer.targets.gallery import refuse_name
from sumformer.targets.opaque import OpaqueTarget


def formula_target(expression: str, **domain: Any) -> Target:
    """As `sumformer.target`."""
    refuse_name(expression, domain.get("d", 1))
    found: Target = make_target(expression, **domain)
    return found


def described(f: Target | OpaqueTarget) -> dict[str, Any]:
    """What was asked for, as `--json` prints it: the formula as written, and the tokens that are given."""
    return {
        "target": f.as_written if isinstance(f, Target) else f.source,
        "positions": f.positioned,
        "dim": f.input_box.d,
        "box": str(f.input_box),
        "tokens": str(f.tokens),
    }

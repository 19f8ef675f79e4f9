"""certificate ↦ f: the target a saved certificate speaks of, positions and functions without a formula included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from sumformer.certificates.certificate import Certificate
from sumformer.errors import InputError
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.opaque import PREFIX, OpaqueTarget
from sumformer.targets.parser import parse
from sumformer.targets.target import Target
from sumformer.targets.target import target as make_target


def saved_target(
    certificate: Certificate, network: Any, function: Callable[[Tensor], Tensor] | None
) -> Target | OpaqueTarget:
    """The target; a function without a formula is `function`, which the network is given as well."""
    c = certificate
    if c.target.startswith(PREFIX):
        numbers = c.constants["width"], c.d, Box.parse(c.box, c.d), Tokens.parse(c.tokens)
        name = c.target.removeprefix(PREFIX)
        f = OpaqueTarget(function, name, *numbers, c.constants["assumed_lipschitz"])
        if function is not None:
            network.bind(f)
        return f
    if function is not None:
        raise InputError("load: function=… is for a target without a formula; this one has its own")
    if c.constants.get("positions"):
        tree = parse(c.constants.get("written", c.target), c.d)  # the same function at whole positions
        return Target(tree, c.d, Box.parse(c.box, c.d), Tokens.parse(c.tokens), positioned=True)
    return make_target(c.target, n=c.tokens, d=c.d, box=c.box)

"""The architectures a target can be built as: A 4.1 directly, or compiled into attention by a later theorem."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sumformer.errors import InputError
from sumformer.theorems.built import Built

# name → the module and the function (f, ε, arithmetic, route=…, **options) → Built; imported when asked for
_THEOREMS = {
    "transformer": ("sumformer.theorems.alberti_2023.theorem_4_3", "transformer"),
    "linformer": ("sumformer.theorems.alberti_2023.theorem_4_4", "linformer"),
    "performer": ("sumformer.theorems.alberti_2023.theorem_4_5", "performer"),
    "deep-transformer": ("sumformer.theorems.yun_2020_deep.theorem_2", "deep_transformer"),
    "sparse-transformer": ("sumformer.theorems.yun_2020_sparse.theorem_1", "sparse_transformer"),
}


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


ARCHITECTURES = ("sumformer", *(name for name, (module, _) in _THEOREMS.items() if _there(module)))


def theorem(architecture: str) -> Callable[..., Built]:
    """The program of the theorem that builds this architecture."""
    if architecture not in ARCHITECTURES or architecture == "sumformer":
        raise InputError(f"construct: expected architecture in {ARCHITECTURES}, got {architecture!r}")
    module, name = _THEOREMS[architecture]
    function: Any = getattr(import_module(module), name)
    return function  # type: ignore[no-any-return]

"""The architectures a target can be built as: A 4.1 directly, or compiled into attention by a later theorem."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from inspect import signature

from sumformer.errors import InputError
from sumformer.theorems.built import Built
from sumformer.theorems.request import spelt

# name → the module and the function (f, ε, arithmetic, route=…, **options) → Built; imported when asked for
_THEOREMS = {
    "transformer": ("sumformer.theorems.alberti_2023.theorem_4_3", "transformer"),
    "linformer": ("sumformer.theorems.alberti_2023.theorem_4_4", "linformer"),
    "performer": ("sumformer.theorems.alberti_2023.theorem_4_5", "performer"),
    "deep-transformer": ("sumformer.theorems.yun_2020_deep.theorem_2", "deep_transformer"),
    "sparse-transformer": ("sumformer.theorems.yun_2020_sparse.theorem_1", "sparse_transformer"),
}


ARCHITECTURES = ("sumformer", *_THEOREMS)
_ALWAYS = {"f", "epsilon", "arithmetic", "route"}


def takers(option: str) -> list[str]:
    """The architectures that take this option."""
    return [name for name in _THEOREMS if option in _options(_program(name))]


def theorem(architecture: str, options: Collection[str] = ()) -> Callable[..., Built]:
    """The program of the theorem that builds this architecture, if it takes these options."""
    if not isinstance(architecture, str) or architecture not in _THEOREMS:
        raise InputError(f"construct: expected architecture in {ARCHITECTURES}, got {architecture!r}")
    function = _program(architecture)
    taken = _options(function)
    unknown = sorted(set(options) - taken)
    if unknown:
        what = f"the options {spelt(sorted(taken))}"
        raise InputError(f"construct: a {architecture} takes {what}; it does not know {spelt(unknown)}")
    return function


def _program(architecture: str) -> Callable[..., Built]:
    module, name = _THEOREMS[architecture]
    function: Callable[..., Built] = getattr(import_module(module), name)
    return function


def _options(function: Callable[..., Built]) -> set[str]:
    return signature(function).parameters.keys() - _ALWAYS

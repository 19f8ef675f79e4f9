"""Saving and loading without pickle: `config.json` says how to build, `model.safetensors` holds the tensors.

A module is its constructor's arguments: each argument is stored under its own name, so the configuration is read off
the object, children included. Only classes known here are ever built from a file.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import nn

from sumformer.errors import FileFormatError, MissingDependencyError, NotSupportedError, SumformerError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
SHOWN = 6  # differences named in a refusal

_REGISTRY: dict[str, type[nn.Module]] = {
    f"torch.{cls.__name__}": cls
    for cls in (nn.Identity, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Linear, nn.LayerNorm, nn.Dropout)
}
# Arguments of the few torch modules above, read back from their attributes.
_TORCH_ARGUMENTS: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Linear: ("in_features", "out_features"),
    nn.LayerNorm: ("normalized_shape", "eps", "elementwise_affine"),
    nn.Dropout: ("p",),
    nn.GELU: ("approximate",),
}


def _type_name(cls: type[nn.Module]) -> str:
    """Our modules by their name alone; a user's with where it is defined, so that it can never replace one of ours."""
    ours = cls.__module__.startswith("sumformer.")
    return cls.__name__ if ours else f"{cls.__module__}.{cls.__qualname__}"


class PretrainedModule(nn.Module):
    """A module that can write itself to a folder and be read back."""

    @property
    def equivariant(self) -> bool:
        """f(PX) = P f(X) for every permutation P. Modules tied to token order answer False."""
        return True

    @property
    def invariant(self) -> bool:
        """f(PX) = f(X): one output per set instead of one per token."""
        return False

    @property
    def exact_n(self) -> int | None:
        """n, for a function of exactly n tokens (padding not counted); None where n is free."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not inspect.isabstract(cls):
            _REGISTRY[_type_name(cls)] = cls

    def config(self) -> dict[str, Any]:
        """The constructor's arguments as plain data."""
        return cast(dict[str, Any], _describe(self))

    def save_pretrained(self, directory: str | Path) -> None:
        """Write `config.json` and `model.safetensors` into `directory`, which is made if needed.

        A tensor shared by several parts is written once for each, and is no longer shared when read back. What the
        configuration would not build again, as a parametrised or pruned part, is refused before anything is written.
        """
        save_file = safetensors_torch().save_file
        folder = Path(directory)
        description = self.config()
        text = json.dumps(description, indent=2)
        _check_rebuilt(self, description)
        folder.mkdir(parents=True, exist_ok=True)
        copies = {k: v.clone(memory_format=torch.contiguous_format) for k, v in self.state_dict().items()}
        save_file(copies, folder / WEIGHTS_FILE)
        (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")
        (folder / WEIGHTS_FILE).chmod((folder / CONFIG_FILE).stat().st_mode)  # safetensors writes for the owner alone

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> Self:
        """Build the module described in `directory` and load its tensors; every mismatch is a `FileFormatError`."""
        folder = Path(directory)
        description = read_config(folder / CONFIG_FILE)
        try:
            module = _build(description, folder / CONFIG_FILE)
        except RecursionError:
            raise FileFormatError(folder / CONFIG_FILE, "is nested too deeply to describe a module") from None
        if not isinstance(module, cls):
            raise FileFormatError(folder / CONFIG_FILE, f"holds a {type(module).__name__}, not a {cls.__name__}")
        load_weights(module, folder / WEIGHTS_FILE)
        return module.eval()


def read_config(path: Path) -> dict[str, Any]:
    """The JSON object in `path`, or a `FileFormatError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except FileNotFoundError:
        raise FileFormatError(path, "no such file; expected a folder written by save_pretrained") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: bad UTF-8, bad JSON, a number too long to read
        raise FileFormatError(path, f"is not readable JSON ({error})") from error
    if not isinstance(value, dict):
        raise FileFormatError(path, f"expected a JSON object, got {type(value).__name__}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice would be read differently by different readers."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a safetensors file, or a `FileFormatError`."""
    safetensors = safetensors_torch()
    if not path.is_file():
        raise FileFormatError(path, "no such file; expected a folder written by save_pretrained")
    try:
        # Copied into memory of torch's own alignment: a matrix product may round differently without it.
        return {key: tensor.clone() for key, tensor in safetensors.load_file(path).items()}
    except Exception as error:  # safetensors raises its own type for truncated and foreign files
        raise FileFormatError(path, f"is truncated or not a safetensors file ({error})") from error


def load_weights(module: nn.Module, path: Path) -> None:
    """Load exactly the tensors the module has: a missing, unknown or misshapen one is named."""
    found = read_tensors(path)
    problems = _misfits(module.state_dict(), found)
    if problems:
        raise FileFormatError(path, "does not fit the model: " + "; ".join(problems))
    module.load_state_dict(found, assign=True)  # tensors keep the dtype they were saved in


def _misfits(wanted: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> list[str]:
    problems = [f"missing {key}" for key in sorted(wanted.keys() - found.keys())]
    problems += [f"unknown key {key}" for key in sorted(found.keys() - wanted.keys())]
    problems += [
        f"{key}: expected shape {tuple(wanted[key].shape)}, got {tuple(found[key].shape)}"
        for key in sorted(wanted.keys() & found.keys())
        if wanted[key].shape != found[key].shape
    ]
    problems += [
        f"{key}: expected a dtype like {wanted[key].dtype}, got {found[key].dtype}"
        for key in sorted(wanted.keys() & found.keys())
        if wanted[key].is_floating_point() != found[key].is_floating_point()
    ]
    return problems


def _check_rebuilt(module: PretrainedModule, description: dict[str, Any]) -> None:
    """Refuse a module other than `description` builds: in the types of its parts, or in the names of its tensors."""
    name = type(module).__name__
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        try:
            again = _build(description, Path(CONFIG_FILE))
        except FileFormatError as error:
            raise NotSupportedError(f"save_pretrained: {error}; its attributes are not its arguments") from error
    wanted, found, none = _parts(again), _parts(module), (nn.Module, "nothing")
    problems = [
        f"{part}: expected {wanted.get(part, none)[1]}, got {found.get(part, none)[1]}"
        for part in sorted(wanted.keys() | found.keys())
        if wanted.get(part) != found.get(part)
    ]
    problems += _misfits(again.state_dict(), module.state_dict())
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise NotSupportedError(
            f"save_pretrained: this {name} is not what its configuration builds: {'; '.join(problems[:SHOWN])}{more}. "
            "Take off what was put on (torch.nn.utils.parametrize.remove_parametrizations, prune.remove), give a part "
            "that was exchanged to the constructor, or save the state_dict()"
        )


def _parts(module: nn.Module) -> dict[str, tuple[type[nn.Module], str]]:
    """Each part's type, and its arguments where no tensor shows them. A list of modules is read back as a sequence."""
    found = {}
    for name, part in module.named_modules(remove_duplicate=False):
        cls = nn.Sequential if type(part) is nn.ModuleList else type(part)
        found[name] = cls, f"{cls.__name__}({part.extra_repr() if cls in (nn.GELU, nn.LayerNorm) else ''})"
    return found


def _describe(value: Any) -> Any:
    if isinstance(value, nn.Sequential | nn.ModuleList):
        return {"type": "torch.Sequential", "modules": [_describe(child) for child in value]}
    if isinstance(value, nn.Module):
        return _describe_module(value)
    if isinstance(value, Mapping):
        return {str(key): _describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NotSupportedError(f"cannot write a {type(value).__name__} into {CONFIG_FILE}")


def _describe_module(module: nn.Module) -> dict[str, Any]:
    cls = type(module)
    name = _type_name(cls) if isinstance(module, PretrainedModule) else f"torch.{cls.__name__}"
    if _REGISTRY.get(name) is not cls:
        raise NotSupportedError(
            f"cannot save a {cls.__name__}: only modules that derive from sumformer.nn.PretrainedModule "
            f"(and a few of torch.nn: {', '.join(sorted(k for k in _REGISTRY if k.startswith('torch.')))}) can be saved"
        )
    if isinstance(module, PretrainedModule):
        names = [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
        return {"type": name, **{p: _describe(getattr(module, p)) for p in names}}
    arguments: dict[str, Any] = {"type": name}
    arguments |= {p: _describe(getattr(module, p)) for p in _TORCH_ARGUMENTS.get(cls, ())}
    if isinstance(module, nn.Linear | nn.LayerNorm):
        arguments["bias"] = module.bias is not None
    return arguments


def _build(description: Any, path: Path) -> Any:
    if isinstance(description, list):
        return [_build(item, path) for item in description]
    if not isinstance(description, dict):
        return description
    if "type" not in description:
        return {key: _build(value, path) for key, value in description.items()}
    arguments = {key: value for key, value in description.items() if key != "type"}
    name = description["type"]
    if name == "torch.Sequential":
        return _build_sequence(arguments.get("modules"), path)
    cls = _REGISTRY.get(name) if isinstance(name, str) else None
    if cls is None:
        raise FileFormatError(path, f"unknown module type {name!r}; known: {', '.join(sorted(_REGISTRY))}")
    built = {key: _build(value, path) for key, value in arguments.items()}
    try:
        return cls(**built)
    except (SumformerError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise FileFormatError(path, f"does not describe a {name}: {error}") from error


def _build_sequence(descriptions: Any, path: Path) -> nn.Sequential:
    modules = _build(descriptions, path)
    if not isinstance(modules, list) or not all(isinstance(module, nn.Module) for module in modules):
        raise FileFormatError(path, "does not describe a torch.Sequential: expected a list of modules")
    return nn.Sequential(*modules)


def safetensors_torch() -> Any:
    """The module that reads and writes tensors."""
    try:
        import safetensors.torch
    except ImportError:
        raise MissingDependencyError("safetensors", "saving and loading", "all") from None
    return safetensors.torch

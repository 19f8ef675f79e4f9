"""`sumformer info`: versions, devices, which fast paths are available and why the others are not."""

from __future__ import annotations

import platform
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import torch
from rich.table import Table

from sumformer.cli.output import Json, command, console, print_json
from sumformer.kernels.availability import obstacle

_PARTS = {  # distribution: (module, what it is for)
    "torch": ("torch", "everything"),
    "numpy": ("numpy", "everything"),
    "safetensors": ("safetensors", "saving and loading"),
    "python-flint": ("flint", "the checker's ball arithmetic"),
    "matplotlib": ("matplotlib", "pictures in reports"),
    "onnx": ("onnx", "export"),
    "onnxruntime": ("onnxruntime", "checking an export"),
    "triton": ("triton", "GPU kernels"),
}


def describe() -> dict[str, Any]:
    """Everything `info` prints, as data."""
    return {
        "sumformer": metadata.version("sumformer"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "packages": {name: _version(name, module) for name, (module, _) in _PARTS.items()},
        "devices": _devices(),
        "fast_paths": _fast_paths(),
    }


def _version(distribution: str, module: str) -> str | None:
    if find_spec(module) is None:
        return None
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "installed"


def _devices() -> list[str]:
    names = [f"cpu ({torch.get_num_threads()} threads)"]
    names += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return names


def _fast_paths() -> dict[str, str]:
    """name → "available", or why not."""
    compiler = "available" if find_spec("torch._inductor") else "not available: this torch has no inductor"
    reason = obstacle()
    state = "available" if reason is None else f"not available: {reason}"
    return {
        "linear-time sums (chunked, any device)": "available",
        "scaled_dot_product_attention": "available",
        "torch.compile": compiler,
        "Triton kernels: mixing layer, prefix sums": state,
        "Triton kernels: constructed networks, power sums": state,
    }


@command
def info(as_json: Json = False) -> None:
    """Versions, devices, and which fast paths are available."""
    data = describe()
    if as_json:
        print_json(data)
        return
    table = Table("part", "version", "for")
    table.add_row("sumformer", data["sumformer"], "")
    table.add_row("python", data["python"], data["platform"])
    for name, (_, purpose) in _PARTS.items():
        table.add_row(name, data["packages"][name] or "not installed", purpose)
    console.print(table)
    console.print("devices: " + ", ".join(data["devices"]))
    for path, state in data["fast_paths"].items():
        console.print(f"{path}: {state}")

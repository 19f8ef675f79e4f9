"""The house: folders in the order of the papers, imports one way, light to import, no file too long to read."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sumformer

PACKAGE = Path(sumformer.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
ORDER = [
    "errors",
    "algebra",
    "targets",
    "kernels",
    "nn",
    "certificates",
    "gadgets",
    "theorems",
    "testing",
    "learn",
    "experiments",
    "interop",
    "cli",
    "explorer",
    "__main__",
]
# The facade `sumformer` stands beside `testing`: it shows the constructions, and what comes later may ask it.
FACADE = "testing"
# `import sumformer` and `import sumformer.nn` must do without these.
OPTIONAL = [
    "typer",
    "rich",
    "safetensors",
    "flint",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "hypothesis",
    "mpmath",
    "sympy",
    "triton",
    "sklearn",
    "pyarrow",
]
LONGEST = 300


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exists(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imports(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, module) for every import, in functions and under TYPE_CHECKING too; relative ones resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                parents = parents[: len(parents) - node.level + is_package]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                yield node.lineno, deeper if exists(deeper) else base


def imports_of(path: Path) -> list[tuple[int, str]]:
    return list(imports(path.read_text(encoding="utf-8"), module_name(path), path.name == "__init__.py"))


def ours(path: Path) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imports_of(path) if name.split(".")[0] == "sumformer"]


def rank(module: str) -> int:
    parts = module.split(".")
    return ORDER.index(parts[1] if len(parts) > 1 else FACADE)


def backward(source: str, module: str, is_package: bool = False) -> list[str]:
    return [
        f"{module}:{line} imports {name}"
        for line, name in imports(source, module, is_package)
        if name.split(".")[0] == "sumformer" and rank(name) > rank(module)
    ]


def test_every_folder_has_its_place_in_the_order():
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert tops <= set(ORDER)


def test_imports_point_one_way():
    found = []
    for path in FILES:
        found += backward(path.read_text(encoding="utf-8"), module_name(path), path.name == "__init__.py")
    assert found == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from sumformer.theorems import construction", "sumformer.nn.mlp"),
        ("def f():\n    import sumformer.cli", "sumformer.testing"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..nn import mlp", "sumformer.targets.tree"),
        ("from sumformer import nn", "sumformer.algebra.interval"),
        ("from sumformer import construct", "sumformer.nn.mlp"),
        ("from .. import nn", "sumformer.algebra.interval"),
        ("from sumformer.cli import main", "sumformer"),
    ],
)
def test_an_import_backwards_is_found(source, module):
    assert len(backward(source, module)) == 1


@pytest.mark.parametrize("first", ["sumformer", "sumformer.nn"])
def test_torch_and_numpy_are_enough_to_import(first):
    program = f"""
import sys, torch, numpy                     # torch itself may load some of the optional ones

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL!r}:
            raise ImportError("blocked: " + name)

for name in [name for name in sys.modules if name.split(".")[0] in {OPTIONAL!r}]:
    sys.modules[name] = None
sys.meta_path.insert(0, Blocked())
import {first}
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_optional_package_is_imported_at_the_top_of_the_definitions():
    found = []
    for path in FILES:
        if module_name(path).split(".")[1:2] not in (["algebra"], ["targets"], ["nn"], ["testing"], ["errors"], []):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                found += [(path.name, name) for name in names if name.split(".")[0] in OPTIONAL]
    assert found == []


def test_no_file_is_too_long():
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_there_is_no_drawer_for_everything():
    drawers = {"utils", "util", "helpers", "misc", "common"}
    assert [path for path in PACKAGE.rglob("*") if path.stem in drawers] == []


def test_the_checker_stands_alone():
    """It shares with the constructions the file it reads and the meaning of a target, nothing else."""
    allowed = ("sumformer.errors", "sumformer.targets", "sumformer.certificates.certificate")
    own = "sumformer.certificates.checker"
    found = [
        f"{module_name(path)}:{line} imports {name}"
        for path in FILES
        if (module_name(path) + ".").startswith(own + ".")
        for line, name in ours(path)
        if not any((name + ".").startswith(prefix + ".") for prefix in (*allowed, own))
    ]
    assert found == []


def test_no_path_of_one_machine():
    pattern = re.compile(r"""(?<![\w.])/(?:home|root|work|Users|mnt|tmp|opt|usr|var|data)/\w|[A-Z]:\\\\""")
    found = []
    for path in PACKAGE.rglob("*"):
        if path.suffix in {".py", ".html", ".js", ".css", ".json", ".toml", ".md"}:
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [f"{path.name}:{i}: {line}" for i, line in enumerate(lines, 1) if pattern.search(line)]
    assert found == []


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_the_facade_only_passes_on():
    """`__init__` of the package: imports, a version and a docstring."""
    for node in ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body:
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.Expr | ast.Assign), ast.unparse(node)

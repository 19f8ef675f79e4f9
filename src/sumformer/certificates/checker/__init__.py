"""The independent checker of certificates: `check(directory)` derives the bound again from the saved files.

Shares with the constructor the target's parser and tree, the reading of certificate.json, and nothing else. Needs
python-flint and safetensors, so the parts are imported when they are used.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from sumformer.certificates.checker.verification import Verification as Verification
from sumformer.errors import FileFormatError, MissingDependencyError

# the network's type in config.json → the module whose `check(directory)` knows it
_CHECKERS = {
    "ExpressionSumformer": "checking",
    "MeshSumformer": "mesh.checking",
    "SymmetricSumformer": "symmetric.checking",
    "GridSumformer": "grid.checking",
    "OpaqueGridSumformer": "opaque.checking",
    "CellSumformer": "counted.checking",
    "Positioned": "positions.checking",
    "CompiledTransformer": "compiled.checking",
    "DeepTransformer": "deep.checking",
    "LookUpTransformer": "look_up.checking",
}
_PLACING = ("Positioned", "DeepTransformer")  # networks that know the places of their tokens


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`."""
    try:
        import flint  # noqa: F401
    except ImportError:
        raise MissingDependencyError("python-flint", "the certificate checker", "certify") from None
    kind = network_type(Path(directory))
    module = import_module(f"{__name__}.{_CHECKERS.get(kind, 'checking')}")
    verification: Verification = module.check(directory)
    if kind not in _PLACING and _positioned(Path(directory)):
        why = "constants: positions are recorded, of which this network knows nothing"
        return replace(verification, verified=False, failures=(*verification.failures, why))
    return verification


def _positioned(folder: Path) -> bool:
    from sumformer.certificates.checker.files import read_certificate

    return "positions" in read_certificate(folder).constants


def network_type(folder: Path) -> str:
    """What config.json says it describes; "" where it cannot be read, which the checker itself reports."""
    from sumformer.certificates.checker.files import read_described

    try:
        return read_described(folder, "a network", lambda data: str(data["type"]))
    except FileFormatError:
        return ""

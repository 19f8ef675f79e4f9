"""The independent checker of certificates: `check(directory)` derives the bound again from the saved files.

Shares with the constructor the target's parser and tree, and nothing else. Needs python-flint and safetensors, so the
parts are imported when they are used.
"""

from __future__ import annotations

from pathlib import Path

from sumformer.certificates.checker.verification import Verification as Verification
from sumformer.errors import MissingDependencyError


def check(directory: str | Path) -> Verification:
    """Verify a folder written by `Construction.save`."""
    try:
        import flint  # noqa: F401
    except ImportError:
        raise MissingDependencyError("python-flint", "the certificate checker", "certify") from None
    from sumformer.certificates.checker.checking import check as run

    return run(directory)

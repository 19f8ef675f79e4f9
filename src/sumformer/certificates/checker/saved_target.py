"""The target a certificate speaks of, parsed again from its source; a positioned one has i and j as x[d] and y[d]."""

from __future__ import annotations

from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.target import Target
from sumformer.targets.target import target as make_target


def read_target(folder: Path, c: Certificate) -> Target:
    try:
        return make_target(c.target, n=c.tokens, d=c.d, box=c.box)
    except (SumformerError, ValueError, OverflowError) as error:
        raise FileFormatError(folder / CERTIFICATE_FILE, f"its target cannot be read ({error})") from error

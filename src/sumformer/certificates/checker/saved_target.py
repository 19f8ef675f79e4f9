"""What a certificate speaks of: its target, parsed again (with positions, i and j are x[d] and y[d]); its domain."""

from __future__ import annotations

from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.target import Target
from sumformer.targets.target import target as make_target


def read_target(folder: Path, c: Certificate) -> Target:
    try:
        f = make_target(c.target, n=c.tokens, d=c.d, box=c.box)
    except (SumformerError, ValueError, OverflowError) as error:
        raise FileFormatError(folder / CERTIFICATE_FILE, f"its target cannot be read ({error})") from error
    if str(f.tokens) != c.tokens:
        reason = f"tokens: the target is defined for {f.tokens}, the certificate says {c.tokens}"
        raise FileFormatError(folder / CERTIFICATE_FILE, reason)
    return f


def read_domain(folder: Path, c: Certificate) -> tuple[Box, Tokens]:
    """Without the target, of which nothing but a name may be saved."""
    try:
        return Box.parse(c.box, c.d), Tokens.parse(c.tokens)
    except (SumformerError, ValueError, OverflowError) as error:
        raise FileFormatError(folder / CERTIFICATE_FILE, f"its domain cannot be read ({error})") from error

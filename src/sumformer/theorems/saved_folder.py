"""The folder of a construction: config.json, model.safetensors, certificate.json, report.html."""

from __future__ import annotations

from os import W_OK, access
from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.errors import FileFormatError, InputError
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE

REPORT_FILE = "report.html"


def check_folder(folder: Path, target: str | None = None) -> None:
    """Refuse a file, what cannot be written, and a folder where saving would replace more than a construction.

    Given a target, also one where it would replace that of another.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not access(there, W_OK):
        why = "is not writable" if there.is_dir() else "is a file"
        raise InputError(f"{folder} cannot be written, as {there} {why}; give another folder")
    if (folder / CERTIFICATE_FILE).exists():
        if target is not None and _target(folder) != target:
            raise InputError(
                f"{folder} holds the network of {_target(folder)}: --overwrite replaces it, or give another --out"
            )
        return
    held = [name for name in (WEIGHTS_FILE, CONFIG_FILE, REPORT_FILE) if (folder / name).exists()]
    if held:
        raise InputError(f"{folder} holds {' and '.join(held)} of something not constructed; give another folder")


def _target(folder: Path) -> str:
    try:
        return Certificate.read(folder / CERTIFICATE_FILE).target
    except FileFormatError:
        return "something else"

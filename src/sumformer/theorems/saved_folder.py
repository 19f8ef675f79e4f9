"""The folder of a construction: config.json, model.safetensors, certificate.json, report.html."""

from __future__ import annotations

from os import W_OK, access
from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.errors import FileFormatError, InputError
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE

REPORT_FILE = "report.html"


def check_folder(folder: Path) -> None:
    """Refuse a file, what cannot be written, and a folder where saving would replace more than a construction."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not access(there, W_OK):
        why = "is not writable" if there.is_dir() else "is a file"
        raise InputError(f"{folder} cannot be written, as {there} {why}; give another folder")
    if (folder / CERTIFICATE_FILE).exists():
        return
    held = [name for name in (WEIGHTS_FILE, CONFIG_FILE, REPORT_FILE) if (folder / name).exists()]
    if held:
        raise InputError(f"{folder} holds {' and '.join(held)} of something not constructed; give another folder")


def check_target(folder: Path, target: str) -> None:
    """Refuse a folder with a construction of another target."""
    path = folder / CERTIFICATE_FILE
    if path.exists():
        try:
            held = Certificate.read(path).target
        except FileFormatError:
            held = "something else"
        if held != target:
            raise InputError(f"{folder} holds the network of {held}: --overwrite replaces it, or give another --out")

"""The folder of a construction: config.json, model.safetensors, certificate.json, report.html."""

from __future__ import annotations

from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE
from sumformer.errors import InputError
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE

REPORT_FILE = "report.html"


def check_folder(folder: Path) -> None:
    """Refuse a file, and a folder where saving would replace anything but another construction."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    if (folder / CERTIFICATE_FILE).exists():
        return
    held = [name for name in (WEIGHTS_FILE, CONFIG_FILE, REPORT_FILE) if (folder / name).exists()]
    if held:
        raise InputError(f"{folder} holds {' and '.join(held)} of something not constructed; give another folder")

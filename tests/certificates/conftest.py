"""`samples`: the constructions of a test file's SAMPLES (all with its OPTIONS), saved; `copy`: one of them, to edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tampered import Copy, Sample, Samples, Tampered

from sumformer.theorems.construction import construct


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sample], Path]:
    """The folder of a construction, built once for all files that ask for it."""
    folders: dict[str, Path] = {}

    def get(sample: Sample) -> Path:
        key = repr(sample)
        if key not in folders:
            source, epsilon, options = sample
            folder = tmp_path_factory.mktemp("sample")
            construct(source, epsilon, **options).save(folder)
            folders[key] = folder
        return folders[key]

    return get


@pytest.fixture(scope="module")
def samples(request: pytest.FixtureRequest, built: Callable[[Sample], Path]) -> Samples:
    def get(name: str) -> Path:
        source, epsilon, options = request.module.SAMPLES[name]
        return built((source, epsilon, {**getattr(request.module, "OPTIONS", {}), **options}))

    return get


@pytest.fixture
def copy(samples: Samples, tmp_path: Path) -> Copy:
    return lambda name: Tampered(samples(name), tmp_path / name)

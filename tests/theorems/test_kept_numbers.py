"""A certificate is about the numbers that were constructed: others are neither run nor signed under it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch

import sumformer
from sumformer.errors import FileFormatError, InputError
from sumformer.theorems.constructed import Construction

X = torch.rand(2, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=[("mean(exp(-norm2(x-y)))", "sumformer"), ("x - mean(y)", "transformer")])
def made(request: pytest.FixtureRequest) -> Construction:
    formula, architecture = request.param
    return sumformer.construct(formula, 1e-2, architecture=architecture)


def first(made: Construction) -> torch.Tensor:
    tensors: dict[str, torch.Tensor] = made.network.state_dict(keep_vars=True)
    return next(iter(tensors.values()))


def test_a_changed_network_is_neither_run_nor_signed(made: Construction, tmp_path: Path) -> None:
    with torch.no_grad():
        first(made).add_(1.0)
    with pytest.raises(InputError, match="no longer those"):
        made(X)
    with pytest.raises(InputError, match="no longer those"):
        made.save(tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_a_change_that_nothing_counts_is_not_signed(made: Construction, tmp_path: Path) -> None:
    first(made).data.add_(1.0)
    with pytest.raises(InputError, match="no longer those"):
        made.save(tmp_path / "net")


def test_numbers_that_are_not_saved_count_too() -> None:
    """Route exact has no weights: its box and its scales follow from the configuration."""
    for change in (lambda net: net.float().double(), lambda net: net._inverse_radius.mul_(1.01)):
        made = sumformer.construct("x**2 - x*mean(y) + mean(y**2)", 1e-6, box="0:1/3")
        made(X / 4)
        change(made.network)
        with pytest.raises(InputError, match="no longer those"):
            made(X / 4)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_files_that_were_exchanged_are_not_loaded(tmp_path: Path, name: str) -> None:
    sumformer.construct("mean(exp(x*y))", 1e-2).save(tmp_path / "a")
    sumformer.construct("mean(exp(-x*y))", 1e-2).save(tmp_path / "b")
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    with pytest.raises(FileFormatError, match="is not the file that certificate"):
        sumformer.load(tmp_path / "a")


def test_copies_and_loaded_numbers_are_the_same(made: Construction, tmp_path: Path) -> None:
    wanted = made(X)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(other(X), wanted)
        other.save(tmp_path / "net")
    made.network.load_state_dict({key: t.clone() for key, t in made.network.state_dict().items()})
    assert torch.equal(made(X), wanted)
    assert torch.equal(sumformer.load(tmp_path / "net")(X), wanted)


def test_a_copy_that_is_changed_is_seen(made: Construction) -> None:
    other = copy.deepcopy(made)
    with torch.no_grad():
        first(other).mul_(2.0).add_(1.0)
    with pytest.raises(InputError, match="no longer those"):
        other(X)
    made(X)


def test_a_network_made_in_inference_mode() -> None:
    with torch.inference_mode():
        made = sumformer.construct("mean(exp(-norm2(x-y)))", 1e-2)
        assert made(X).shape == X.shape

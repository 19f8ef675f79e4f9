"""Files in, sets out: every format, and every way a file can be wrong is one message."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sumformer.errors import FileFormatError, InputError, ShapeError, SumformerError
from sumformer.learn import Reading, Sampling, read, sets_from_arrays
from sumformer.learn.writing import write_predictions

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 4, 2)), RNG.normal(size=(6, 4, 3))
LENGTHS = np.array([4, 3, 2, 1, 4, 4])


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_and_safetensors_give_the_same_sets(tmp_path):
    from safetensors.numpy import save_file

    save_file({"x": X, "y": Y, "lengths": LENGTHS}, tmp_path / "a.safetensors")
    first = read(npz(tmp_path / "a.npz", x=X, y=Y, lengths=LENGTHS))
    second = read(tmp_path / "a.safetensors")
    mask = np.arange(4) < LENGTHS[:, None]
    third = read(npz(tmp_path / "b.npz", x=np.where(mask[..., None], X, np.nan), y=Y, mask=mask))
    for sets in (second, third):
        assert torch.equal(first.x, sets.x)
        assert torch.equal(first.y, sets.y)
        assert torch.equal(first.keep, sets.keep)
        assert sets.task == first.task
    assert first.fingerprint() == second.fingerprint()
    assert first.task.per_token
    assert first.x[3, 1:].abs().max() == 0


def parquet(path, rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(rows), path)
    return path


def test_parquet_has_a_row_for_each_token(tmp_path):
    rows = {"set": ["b", "a", "b", "a", "b"], "x0": [0.0, 1, 2, 3, 4], "x1": [5.0, 6, 7, 8, 9], "y": [1.0, 2, 3, 4, 5]}
    sets = read(parquet(tmp_path / "t.parquet", rows))
    assert sets.lengths.tolist() == [3, 2]
    assert sets.x[0].tolist() == [[0, 5], [2, 7], [4, 9]]
    assert sets.y[1, :2, 0].tolist() == [2, 4]
    repeated = read(parquet(tmp_path / "s.parquet", rows | {"y": [1.0, 2, 1, 2, 1]}))
    assert not repeated.task.per_token
    assert repeated.y.flatten().tolist() == [1, 2]
    named = Reading(set_column="set", features=("x1",), targets=("x0",))
    assert read(tmp_path / "t.parquet", named).d == 1
    y = np.array([[10.0, 20, 30], [40, 50, 0]])
    write_predictions(tmp_path / "p.parquet", y, sets, tmp_path / "t.parquet", sets.task, ("y",))
    import pyarrow.parquet as pq

    out = pq.read_table(tmp_path / "p.parquet")
    assert out["y"].to_pylist() == [10, 40, 20, 50, 30]
    assert out["set"].to_pylist() == rows["set"]
    with pytest.raises(FileFormatError, match="missing weight"):
        read(tmp_path / "t.parquet", Reading(features=("weight",)))
    with pytest.raises(FileFormatError, match="differ within a set"):
        read(tmp_path / "t.parquet", Reading(per="set"))


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_a_truncated_or_foreign_file_is_named(tmp_path, suffix):
    if suffix == ".npz":
        file = npz(tmp_path / "a.npz", x=X, y=Y)
    elif suffix == ".safetensors":
        from safetensors.numpy import save_file

        file = tmp_path / "a.safetensors"
        save_file({"x": X, "y": Y}, file)
    else:
        file = parquet(tmp_path / "a.parquet", {"set": [0, 0], "x": [1.0, 2.0], "y": [1.0, 3.0]})
    whole = file.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:-1], b"", b"hello"):
        file.write_bytes(data)
        with pytest.raises(FileFormatError, match=r"truncated|damaged"):
            read(file)
    with pytest.raises(FileFormatError, match="no such file"):
        read(tmp_path / f"none{suffix}")


def test_objects_in_an_npz_are_not_unpickled(tmp_path):
    for arrays, instead in (
        ({"x": np.array([{"a": 1}], dtype=object)}, "x is an array of Python objects; save sets of several sizes pad"),
        (
            {"x": X, "y": np.array(["a"] * 5 + [1], dtype=object)},
            "y is an array of Python objects; save labels as text",
        ),
    ):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(FileFormatError, match=instead):
            read(tmp_path / "a.npz")


def test_nobody_is_told_to_unpickle(tmp_path):
    (tmp_path / "a.npz").write_text("hello")
    with pytest.raises(FileFormatError, match=r"truncated or not an \.npz file") as caught:
        read(tmp_path / "a.npz")
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X}, "no targets"),
        ({"y": Y}, "expected x"),
        ({"X": X, "Y": Y}, "expected x .* found X, Y"),
        ({"x": X[0], "y": Y}, "shape"),
        ({"x": X, "y": Y[:5]}, "each of the 6 sets"),
        ({"x": X, "y": np.zeros((6, 4, 3, 2))}, "one target"),
        ({"x": X, "y": Y, "mask": np.ones((6, 3))}, "mask"),
        ({"x": X, "y": Y, "lengths": np.array([4, 4, 5, 4, 4, 4])}, r"lengths\[2\].* to n = 4, got 5"),
        ({"x": X, "y": Y, "lengths": np.ones(6)}, "6 integers from 0 to 4, got float64"),
        ({"x": np.where(X[2, 1, 0] == X, np.inf, X), "y": Y}, "token 1 of set 2"),
        ({"x": X, "y": np.where(Y[4, 3, 0] == Y, np.nan, Y)}, r"y\[4, 3\]"),
        ({"x": X.astype(str), "y": Y}, "real numbers"),
        ({"x": X, "y": np.zeros(6, dtype=int)}, "one class only"),
    ],
)
def test_wrong_shapes_and_numbers_are_named(tmp_path, arrays, words):
    with pytest.raises(SumformerError, match=words):
        read(npz(tmp_path / "a.npz", **arrays))


def test_what_the_shapes_leave_open_follows_the_rule():
    assert sets_from_arrays(X, Y[:, :, 0]).task.per_token
    assert not sets_from_arrays(X, Y[:, :, 0], per="set").task.per_token
    assert sets_from_arrays(X, Y[:, 0]).task.k == 3
    assert sets_from_arrays(X, Y[:, 0, 0]).task.flat
    labels = np.array(["a", "b", "c", "a", "b", "c"])
    assert sets_from_arrays(X, labels).task.classes == ("a", "b", "c")
    assert sets_from_arrays(X, np.arange(6)).task.kind == "classification"
    assert sets_from_arrays(X, np.arange(6), task="regression").task.kind == "regression"
    with pytest.raises(InputError, match="labels"):
        sets_from_arrays(X, labels, task="regression")
    with pytest.raises(InputError, match="no whole numbers"):
        sets_from_arrays(X, Y[:, 0, 0], task="classification")
    ragged = sets_from_arrays([X[0], X[1, :2]], [np.array([0, 1, 2, 0]), np.array([2, 1])])
    assert ragged.task.per_token
    assert ragged.y[1, :2].tolist() == [2, 1]
    with pytest.raises(ShapeError, match=r"y\[1\]"):
        sets_from_arrays([X[0], X[1, :2]], [np.zeros(4), np.zeros(3)], per="token")


def test_a_formula_is_sampled_from_its_box_and_seed():
    sets = read("target:x - mean(y)", Reading(sampling=Sampling(sets=5, tokens=3, dim=2, box="-1:0,2:3")))
    assert sets.x[..., 0].max() <= 0
    assert sets.x[..., 1].min() >= 2
    assert torch.allclose(sets.y, sets.x - sets.x.mean(1, keepdim=True))
    assert (
        sets.fingerprint()
        != read("target:x - mean(y)", Reading(sampling=Sampling(5, 3, 2, "-1:0,2:3", 1))).fingerprint()
    )
    with pytest.raises(SumformerError):
        read("target:log(x - 2)")
    with pytest.raises(SumformerError):
        read("data.csv")

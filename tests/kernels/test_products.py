"""The four fused steps against their twins, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sumformer.kernels import products
from sumformer.kernels.layout import Layout
from sumformer.testing import relative_error

LAYOUTS = {
    "one": Layout(1, 50, 50),
    "batch": Layout(2, 25, 50),
    "tiles": Layout(2, 32, 64),
    "pack": Layout(4, 0, 50, torch.tensor([0, 7, 7, 40, 50], dtype=torch.int32)),
}
DTYPES = {torch.float32: 1e-6, torch.float16: 2e-3}  # the interpreter's product takes bfloat16 for integers


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def both(run, dtype: torch.dtype) -> None:
    """`run` once through the kernels, once through the twins in float64."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_interpreted", False)
        wanted = run(torch.float64)
    for got, want in zip(run(dtype), wanted, strict=True):
        assert got.isfinite().all()
        assert relative_error(got.double(), want.double()) <= DTYPES[dtype]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(layout, dtype):
    x, w, b = (draw(i, *s, dtype=dtype) for i, s in enumerate([(layout.rows, 24), (40, 24), (40,)]))
    keep = None if layout.cu_seqlens is not None else draw(9, layout.rows) > -0.5

    def run(kind):
        return [products.sums(x.to(kind), w.to(kind), b.to(kind), "gelu", layout, keep, 0.5)]

    both(run, dtype)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_sums_by_a_pass_where_tiles_would_be_empty(layout, monkeypatch):
    monkeypatch.setattr(products, "in_one_kernel", lambda *_: False)
    test_sums(layout, torch.float32)


@pytest.mark.usefixtures("interpreted")
def test_short_sequences_are_not_multiplied_in_tiles_of_their_own():
    x, w = draw(0, 64, 24), draw(1, 40, 24)
    assert products.in_one_kernel(x, w, Layout(1, 64, 64))
    assert not products.in_one_kernel(x, w, Layout(32, 2, 64))
    assert not products.in_one_kernel(x[:, :22].contiguous(), w[:, :22].contiguous(), Layout(1, 64, 64))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("large", [False, True])
def test_sums_by_tiles_of_either_size(layout, large):
    """A pack too, whether or not its tiles are full."""
    x, w, b = (draw(i, *s) for i, s in enumerate([(layout.rows, 24), (40, 24), (40,)]))
    keep = None if layout.cu_seqlens is not None else draw(9, layout.rows) > -0.5
    partial, per_sequence, ends = products.tile_sums(x, w, b, "gelu", layout, keep, large)
    assert partial.shape[0] == layout.tile_count(32 if large else 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_interpreted", False)
        wanted = products.sums(*(t.double() for t in (x, w, b)), "gelu", layout, keep)
    assert relative_error(products._total(partial, layout, per_sequence, ends, 1.0).double(), wanted) <= 1e-6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("save", [False, True])
def test_hidden(layout, save):
    x, w, shift = (draw(i, *s) for i, s in enumerate([(layout.rows, 24), (40, 24), (layout.sequences, 40)]))

    def run(kind):
        h, g = products.hidden(x.to(kind), w.to(kind), shift.to(kind), "silu", layout, save)
        assert (g is not None) == save
        return [h] if g is None else [h, g]

    both(run, torch.float32)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", [LAYOUTS["one"], LAYOUTS["tiles"]])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("save", [False, True])
def test_hidden_by_tiles_of_either_size(layout, large, save):
    x, w, shift = (draw(i, *s) for i, s in enumerate([(layout.rows, 24), (40, 24), (layout.sequences, 40)]))
    assert products._whole(layout)
    h, g = products.hidden_tiles(x, w, shift, "silu", layout, save, large)
    wanted = products.hidden_by_pass(x, w, shift, "silu", layout, True)
    for got, want in zip([h] if g is None else [h, g], wanted, strict=False):
        assert relative_error(got, want) <= 1e-6


def test_which_tiles(monkeypatch):
    """Large ones where they are mostly full and most multiprocessors get one; whole ones lie in one sequence each."""
    monkeypatch.setattr(products, "_multiprocessors", lambda _: 8)
    many = [products._many(Layout(s, n, s * n), 128, torch.device("cpu")) for s, n in ((1, 1280), (1, 1281), (12, 100))]
    assert many == [False, True, False]
    assert products._many(Layout(1, 512, 512), 384, torch.device("cpu"))
    assert [products._whole(Layout(s, n, s * n)) for s, n in ((1, 100), (2, 256), (2, 100))] == [True, True, False]
    assert not products._whole(LAYOUTS["pack"])


@pytest.mark.usefixtures("interpreted")
def test_what_the_accelerator_cannot_address_is_not_in_one_kernel():
    x, w, layout = draw(0, 64, 24), draw(1, 40, 24), Layout(1, 64, 64)
    moved = draw(0, 64 * 24 + 1)[1:].view(64, 24)
    assert moved.data_ptr() % 16 != 0
    assert products.in_one_kernel(x, w, layout)
    assert not products.in_one_kernel(moved, w, layout)
    assert not products.in_one_kernel(x, w.T.contiguous().T, layout)
    assert not products.in_one_kernel(x[:, :22].half().contiguous(), w[:, :22].half().contiguous(), layout)
    narrow, shift = w[:38].contiguous(), draw(2, 1, 38)
    h, _ = products.hidden(x, narrow, shift, "relu", layout, False)  # rows of h begin where they may not
    assert relative_error(h, (x @ narrow.T + shift).relu()) <= 1e-6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("out_width", [24, 40])
def test_pull_writes_its_columns_and_no_others(layout, out_width):
    shapes = [(layout.rows, out_width), (out_width, 40), (layout.rows, 40), (layout.sequences, 40)]
    y, w, g, shift = (draw(i, *s) for i, s in enumerate(shapes))

    def run(kind):
        out = torch.full((layout.rows, 48), torch.nan, dtype=kind)
        sums = products.pull(y.to(kind), w.to(kind), g.to(kind), shift.to(kind), "tanh", layout, out[:, :40])
        assert out[:, 40:].isnan().all()
        return out[:, :40], *sums

    both(run, torch.float32)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_spread(layout, name):
    shapes = [(layout.rows, 24), (40, 24), (40,), (layout.sequences, 40)]
    x, w, b, scale = (draw(i, *s) for i, s in enumerate(shapes))
    keep = None if layout.cu_seqlens is not None else draw(9, layout.rows) > -0.5

    def run(kind):
        out = torch.full((layout.rows, 40), torch.nan, dtype=kind)
        sums = products.spread(x.to(kind), w.to(kind), b.to(kind), scale.to(kind), name, layout, keep, out)
        return out, sums

    both(run, torch.float32)

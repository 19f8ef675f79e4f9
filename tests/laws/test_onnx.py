"""ONNX: one file, exported once with free batch and n, equals the module at sizes never seen at export."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sumformer.errors import NotSupportedError
from sumformer.interop.onnx import export_onnx, onnx_error
from sumformer.nn import Encoder, FavorAttention, LearnedPositions, SumMixer, TokenEmbedding, TokenHead
from sumformer.testing import TOLERANCE

from .modules import CASES, Case, D, over_cases, tokens

SIZES = [(1, 1), (3, 2), (4, 33), (2, 60)]  # at most n_max = 64 of the modules that have one
LONG = (1, 300)
BOUNDED = ("linformer", "bilinear_projection", "learned_positions")
# In the fast suite one of each kind of graph: Σ, features, mixtures, a window, a whole model.
MASKED = {"sum_mixer-mean", "favor", "linformer", "encoder-pooled"}
BARE = {"mlp_sumformer-sum", "separable_convolution", "sparse-window"}


def keep_of(batch: int, n: int) -> torch.Tensor:
    """Every third token of the last row away; of more than two rows the first is nothing but padding."""
    keep = torch.ones(batch, n, dtype=torch.bool)
    keep[-1, 1::3] = False
    if batch > 2:
        keep[0] = False
    return keep


def check(case: Case, folder, masked: bool, is_causal: bool = False, dtype: torch.dtype = torch.float32) -> None:
    module = case.make(dtype)
    # ONNX's LayerNormalization has ε as a float32 attribute: (var + ε)^{-1/2} moves by up to 2^-25 of itself.
    limit = max(TOLERANCE[dtype], 2**-25 if any(isinstance(part, nn.LayerNorm) for part in module.modules()) else 0)
    path = export_onnx(module, folder / "module.onnx", tokens(1, dtype), masked, is_causal)
    for batch, n in SIZES if case.name.startswith(BOUNDED) else [*SIZES, LONG]:
        (mask,) = case.mask(keep_of(batch, n)).values()
        error = onnx_error(module, path, tokens(n, dtype, batch), mask if masked else None, is_causal)
        assert error <= limit, (batch, n)


@over_cases(case for case in CASES if case.name in MASKED)
def test_with_a_mask(case, tmp_path):
    check(case, tmp_path, masked=True)


@over_cases(case for case in CASES if case.name in BARE)
def test_without_a_mask(case, tmp_path):
    check(case, tmp_path, masked=False)


def test_in_float64(tmp_path):
    """Constants of the graph keep the precision of the numbers."""
    check(next(case for case in CASES if case.name == "softmax"), tmp_path, masked=True, dtype=torch.float64)


def test_an_operation_that_the_runtime_lacks(tmp_path):
    """GELU in float64: the file is there, onnxruntime cannot run it."""
    mixer, x = SumMixer(D).double(), tokens(3)
    path = export_onnx(mixer, tmp_path / "mixer.onnx", x)
    with pytest.raises(NotSupportedError, match=r"lacks an operation of mixer.onnx .*Erf.*module.float\(\)"):
        onnx_error(mixer, path, x)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@over_cases()
def test_every_module(case, masked, tmp_path):
    check(case, tmp_path, masked)


@pytest.mark.slow
@over_cases(case for case in CASES if case.causal)
def test_every_module_in_causal_order(case, tmp_path):
    check(case, tmp_path, masked=False, is_causal=True)


@pytest.mark.slow
@over_cases(case for case in CASES if "sum_mixer" not in case.name)
def test_every_module_in_float64(case, tmp_path):
    check(case, tmp_path, masked=True, dtype=torch.float64)


@pytest.mark.slow
def test_prefix_features_across_chunks(tmp_path):
    """The running maximum and the sums over chunks, unrolled at export, reach as far as those of the module."""
    layer = FavorAttention(D, k=8, nhead=2).double()
    path = export_onnx(layer, tmp_path / "layer.onnx", tokens(1), is_causal=True)
    assert onnx_error(layer, path, tokens(5000, batch=1), is_causal=True) <= TOLERANCE[torch.float64]


def test_a_model_of_integer_tokens(tmp_path):
    model = Encoder(TokenEmbedding(11, D), [SumMixer(D)], TokenHead(D, 3), LearnedPositions(64, D))
    path = export_onnx(model, tmp_path / "model.onnx", torch.zeros(1, 1, dtype=torch.long), masked=True)
    words = torch.randint(0, 11, (3, 40), generator=torch.Generator().manual_seed(0))
    assert onnx_error(model, path, words, keep_of(3, 40).long()) <= TOLERANCE[torch.float32]


def test_dropout_is_off_and_the_module_left_as_it_was(tmp_path):
    mixer = SumMixer(D, dropout=0.5)
    mixer.out.eval()
    path = export_onnx(mixer, tmp_path / "mixer.onnx", tokens(1, torch.float32))
    assert onnx_error(mixer, path, tokens(20, torch.float32)) <= TOLERANCE[torch.float32]
    assert mixer.training
    assert mixer.drop.training
    assert not mixer.out.training


def test_more_tokens_than_a_table_holds_stop_the_session(tmp_path):
    """The file has no Python checks; it must fail all the same rather than answer."""
    positions, x = LearnedPositions(9, D), tokens(10, torch.float32)
    path = export_onnx(positions, tmp_path / "positions.onnx", x)
    with pytest.raises(Exception, match=r"invalid index found|out of data bounds"):
        onnx_error(positions, path, x)


@pytest.mark.parametrize("n_max", [1, 2, 5])
def test_a_table_shorter_than_what_is_traced(n_max, tmp_path):
    positions = LearnedPositions(n_max, D)
    path = export_onnx(positions, tmp_path / "short.onnx", tokens(1, torch.float32))
    for n in {1: [1], 2: [2], 5: [2, 5]}[n_max]:  # of one or two tokens the graph has the number as a constant
        assert onnx_error(positions, path, tokens(n, torch.float32)) <= TOLERANCE[torch.float32]


class FixesLength(nn.Module):
    """A user's module whose graph would serve one n only."""

    def forward(self, x):
        return x * float(x.shape[1])


class HasNoGraph(nn.Module):
    """Looks at the numbers."""

    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_what_would_serve_one_length_only_is_refused(tmp_path):
    with pytest.raises(NotSupportedError, match=r"FixesLength fixes n = 7 .*not in float\(n\)"):
        export_onnx(FixesLength(), tmp_path / "module.onnx", tokens(3))
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_says_so(tmp_path):
    with pytest.raises(NotSupportedError, match="HasNoGraph has no ONNX form"):
        export_onnx(HasNoGraph(), tmp_path / "module.onnx", tokens(3))
    with pytest.raises(NotSupportedError, match="takes no mask; export it with masked=False"):
        export_onnx(FixesLength(), tmp_path / "module.onnx", tokens(3), masked=True)

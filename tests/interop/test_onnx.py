"""Constructed networks in onnxruntime, at lengths never seen at export."""

import pytest
import torch

import sumformer
from sumformer.errors import InputError, NotSupportedError
from sumformer.interop.onnx import export_onnx, onnx_error
from sumformer.nn import PieceStack, ReluStack, mlp_sumformer


@pytest.mark.parametrize(
    ("source", "d", "dtype"),
    [("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", 2, "mixed"), ("x*mean_others(sigmoid(x-y))", 1, "float32")],
)
def test_a_construction_exports_with_free_batch_and_n(source, d, dtype, tmp_path):
    c = sumformer.construct(source, 1e-2, d=d, dtype=dtype)
    path = export_onnx(c.network, tmp_path / "network.onnx", torch.rand(1, 3, d))
    for batch, n in ((1, 2), (3, 1500)):
        assert onnx_error(c.network, path, torch.rand(batch, n, d)) < 1e-5


@pytest.mark.parametrize(("tokens", "n"), [("..5", "≤ 5"), ("2..1000", "≤ 1000"), ("any..50", "≤ 50"), ("any", "free")])
def test_a_construction_for_a_range_of_n_says_which(tokens, n, tmp_path):
    onnx = pytest.importorskip("onnx")
    made = sumformer.construct("x*mean(y)", 1e-3, n=tokens)
    path = export_onnx(made, tmp_path / "network.onnx")
    facts = {entry.key: entry.value for entry in onnx.load(str(path), load_external_data=False).metadata_props}
    assert (facts["n"], facts["tokens"]) == (n, tokens)
    for count in (2, 5):
        assert onnx_error(made.network, path, torch.rand(3, count, 1, dtype=torch.float64)) < 1e-12


@pytest.mark.parametrize("stack", [ReluStack(3, 4, 5), PieceStack(3, 5)], ids=["relu", "pieces"])
def test_a_stack_that_trains_is_exported_too(stack, tmp_path):
    assert all(parameter.requires_grad for parameter in stack.parameters())
    x = torch.rand(2, 4, 3)
    export_onnx(stack, tmp_path / "stack.onnx", x)
    assert onnx_error(stack, tmp_path / "stack.onnx", x) <= 1e-5


def test_a_boolean_mask_is_given_in_the_dtype_of_the_file(tmp_path):
    torch.manual_seed(0)
    net, x = mlp_sumformer(3, 4, 2), torch.rand(2, 5, 3)
    path = export_onnx(net, tmp_path / "net.onnx", x, masked=True)
    keep = torch.ones(2, 5, dtype=torch.bool)
    keep[0, 3:] = False
    assert onnx_error(net, path, x, mask=keep) == onnx_error(net, path, x, mask=keep.long()) <= 1e-5


def test_rows_added_in_place_are_not_exported(tmp_path):
    """onnxruntime adds them in a race."""

    class Adding(torch.nn.Module):
        def forward(self, x):
            return x.new_zeros(4, x.shape[2]).index_add(0, (x[..., 0].flatten() > 0).long(), x.flatten(0, 1))

    with pytest.raises(NotSupportedError, match="scatter_add"):
        export_onnx(Adding(), tmp_path / "net.onnx", torch.rand(2, 5, 3))


def test_a_file_in_a_folder_that_is_not_there_yet(tmp_path):
    stack = ReluStack(3, 4, 5)
    assert export_onnx(stack, tmp_path / "new" / "stack.onnx", torch.rand(2, 4, 3)).is_file()
    with pytest.raises(InputError, match=r"expected the name of a file, as model\.onnx; .* is a folder"):
        export_onnx(stack, tmp_path / "new", torch.rand(2, 4, 3))

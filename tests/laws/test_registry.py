"""The registry holds every public module that maps tokens to tokens or to one vector."""

from __future__ import annotations

import inspect

from sumformer import nn

from .modules import CASES

# Parts of the cases rather than maps of token sequences; ExpressionSumformer has laws of its own, under a certificate;
# TokenEmbedding takes integers, which have neither NaN nor gradients: tests/nn/test_token_embedding.py.
NOT_CASES = {"Concatenated", "Entmax15", "Hardmax", "MLP", "PairMLP", "PolynomialFeatures", "Softmax", "Sparsemax"}
ELSEWHERE = {
    "CellSumformer",
    "CompiledTransformer",
    "DeepTransformer",
    "ExpressionSumformer",
    "GridSumformer",
    "LookUpTransformer",
    "MeshSumformer",
    "OpaqueGridSumformer",
    "Positioned",
    "SparseFeedForward",
    "SparseStepFeedForward",
    "SymmetricSumformer",
    "TokenEmbedding",
}


def test_no_module_is_forgotten():
    public = {
        name
        for name, value in vars(nn).items()
        if inspect.isclass(value) and issubclass(value, nn.PretrainedModule) and not inspect.isabstract(value)
    }
    covered = {type(case.make()).__name__ for case in CASES}
    assert public - NOT_CASES - ELSEWHERE - {"PretrainedModule"} == covered


def test_names_are_distinct_and_masks_spelt_as_the_registry_says():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        parameters = inspect.signature(case.make().forward).parameters
        assert ("attention_mask" in parameters) == case.model, case.name
        assert ("key_padding_mask" in parameters) != case.model, case.name

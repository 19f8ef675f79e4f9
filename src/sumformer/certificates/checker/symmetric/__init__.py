"""The checker of `SymmetricSumformer`: sup |f − N| from its coefficients and the recorded degrees and ellipses."""

"""The checker of `GridSumformer`: cells, codes, a modulus of continuity by its own differentiation, and rounding."""

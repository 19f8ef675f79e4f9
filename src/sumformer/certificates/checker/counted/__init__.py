"""The checker of `CellSumformer`: cells are counted; a modulus free of n by its own differentiation; rounding."""

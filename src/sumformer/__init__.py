"""Permutation-equivariant functions as networks with a certified worst-case error."""

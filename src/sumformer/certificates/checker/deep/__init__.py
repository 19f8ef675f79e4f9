"""The checker's rules for deep and sparse Transformers: d_p(f, N) from the saved weights."""

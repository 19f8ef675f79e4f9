"""Yun et al., "Are Transformers universal approximators of sequence-to-sequence functions?", ICLR 2020."""

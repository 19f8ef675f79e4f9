"""Lemma-sized weight builders: ReLU networks with a proved error on a stated range."""

"""Lemma-sized weight builders."""

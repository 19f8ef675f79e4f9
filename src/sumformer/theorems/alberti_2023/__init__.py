"""Alberti, Dern, Thesing, Kutyniok 2023: Sumformer. Theorem 4.1 as a program."""

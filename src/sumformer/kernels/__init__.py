"""Faster evaluation of a definition; its naive twin is the definition."""

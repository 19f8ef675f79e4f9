"""The definitions, one per file."""

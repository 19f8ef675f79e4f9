"""One figure, one file."""

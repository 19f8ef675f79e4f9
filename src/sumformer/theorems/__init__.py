"""One statement, one file; one paper, one folder."""

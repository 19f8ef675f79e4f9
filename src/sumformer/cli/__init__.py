"""The command line: one command, one file."""

from sumformer.cli.app import main as main

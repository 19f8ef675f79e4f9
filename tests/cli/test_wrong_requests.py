"""A request that makes no sense is one message on standard error and exit code 2, never a traceback."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sumformer.cli.app import app

OF_BOTH = ["-e nan", "-e 0", "-e -1", "-e inf", "-e a", "-n 0", "-n -1", "-n 2.5", "-d 0", "-d -1", "-d 2.5", "-d x"]
OF_BOTH += ["--dtype float16", "--box 1:0", "--colour 1"]
OF_CONSTRUCT = ["--as mlp", "--route short", "--as deep-transformer -n 2 --norm-p 0.5", "--as all -e nan"]


@pytest.mark.parametrize(
    ("command", "words"),
    [*(("construct", words) for words in (*OF_BOTH, *OF_CONSTRUCT)), *(("routes", words) for words in OF_BOTH)],
)
def test_one_message_and_exit_code_2(command: str, words: str):
    found = CliRunner().invoke(app, [command, "x - mean(y)", *words.split()])
    said = [line for line in found.stderr.splitlines() if line.lower().startswith("error: ")]
    assert (found.exit_code, len(said)) == (2, 1), found.output
    assert isinstance(found.exception, SystemExit)
    assert found.stdout == ""
    assert "Traceback" not in found.stderr

"""`sumformer routes`: the table names the route that construct takes, and agrees with what forcing a route gives."""

import json

import pytest
from typer.testing import CliRunner

from sumformer import construct, target
from sumformer.cli.app import app
from sumformer.errors import SumformerError
from sumformer.theorems.routes import in_order

CASES = [
    ("x*mean(y)**2", "3", 1e-3),
    ("mean(exp(x*y))", "3", 1e-2),
    ("max(y)", "2", 0.2),
    ("mean(sin(3*y*mean(y)))", "2", 0.1),
    ("max(abs(x-y))", "any", 0.1),
]


@pytest.mark.parametrize(("source", "tokens", "epsilon"), CASES)
def test_routes_agree_with_construct(source, tokens, epsilon):
    result = CliRunner().invoke(app, ["routes", source, "-n", tokens, "-e", str(epsilon), "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    f = target(source, n=tokens)
    assert list(data["routes"]) == list(in_order(f))
    assert construct(f, epsilon).certificate.route == data["chosen"]
    for route, one in data["routes"].items():
        assert one["why"]
        if one["possible"]:
            assert construct(f, epsilon, route=route).certificate.total <= epsilon
        else:
            with pytest.raises(SumformerError):
                construct(f, epsilon, route=route)


def test_the_table_prints_reasons():
    result = CliRunner().invoke(app, ["routes", "max(y)", "-n", "2", "-e", "0.2"])
    assert result.exit_code == 0, result.output
    for word in ("exact", "sums", "symmetric", "grid", "chosen"):
        assert word in result.stdout
    assert CliRunner().invoke(app, ["routes", "max(y)", "--dtype", "float16"]).exit_code == 2


def test_cells_are_asked_for_by_name(tmp_path):
    run = CliRunner().invoke
    result = run(
        app, ["construct", "max(norm(x-y))", "--dim", "2", "-e", "0.2", "--route", "cells", "-o", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "8 × 8 cells" in " ".join(result.stdout.split())
    assert run(app, ["verify", str(tmp_path)]).exit_code == 0
    refused = run(app, ["construct", "max(norm(x-y))", "--dim", "2", "-e", "1e-4", "--route", "cells"])
    assert refused.exit_code == 2
    assert "181 × 181 cells, tokens move f by up to" in " ".join(refused.output.split())

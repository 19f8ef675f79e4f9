"""Report and explanation of a network that counts cells."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sumformer
from sumformer.experiments.construction_report import cell_counts
from sumformer.experiments.construction_report.page import write_report
from sumformer.experiments.explain.run import explain


@pytest.fixture(scope="module", params=["max(norm(x - y))", "max(y) - mean(abs(x - y))"])
def made(request) -> sumformer.Construction:
    return sumformer.construct(request.param, 0.1, d=2)


def test_the_report_draws_the_cells(made, tmp_path):
    write_report(made, tmp_path / "report.html", None)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Cells against bound" in page
    assert f"{made.certificate.latent_dimension} are chosen" in page


def test_nothing_to_count_is_no_curve(tmp_path):
    write_report(sumformer.construct("x", 0.1, d=1, route="cells"), tmp_path / "report.html", None)
    assert "has no kernels to cut" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_curve_passes_through_what_is_certified(made):
    curve = cell_counts.run(made)
    cells, modulus = curve.chosen
    drawn = curve.moduli[curve.cells.index(cells)]
    assert 0.9 * modulus <= drawn <= 1.01 * modulus
    assert list(curve.moduli) == sorted(curve.moduli, reverse=True)


def test_tokens_are_counted_where_they_are(made, tmp_path):
    made.save(tmp_path)
    told = explain(tmp_path)
    assert not told.violations
    counted = [v.computed for v in told.values if v.block == "Σ"]
    assert sum(counted) == len(told.X) * len(made.network.tables)


def test_moved_centres_are_noticed(made, tmp_path):
    broken = sumformer.construct(made.target, 0.1)
    broken.network.centres[0].data.copy_(broken.network.centres[0].flip(0))
    replace(broken).save(tmp_path)
    assert "x_1[0]" in explain(tmp_path).violations

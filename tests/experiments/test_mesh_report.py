"""Report and explanation of a network on a mesh."""

from __future__ import annotations

from itertools import pairwise

import pytest

import sumformer
from sumformer.experiments.construction_report import meshes, slices
from sumformer.experiments.construction_report.page import write_report
from sumformer.experiments.explain.run import explain


@pytest.fixture(scope="module", params=["mean(exp(y)*sigmoid((x-y)/0.05))", "mean(exp(-7*abs(x-y)))"])
def made(request) -> sumformer.Construction:
    return sumformer.construct(request.param, 1e-2, d=1, route="mesh")


def test_the_report_draws_the_mesh(made, tmp_path):
    write_report(made, tmp_path / "report.html", None)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Mesh against bound" in page
    assert "nodes that a token meets" in page


def test_the_curve_passes_through_what_is_recorded(made):
    (curve,) = meshes.run(made)
    m, remainder = curve.chosen
    drawn = curve.remainders[curve.intervals.index(m)]
    assert 0.99 * remainder <= drawn <= 1.01 * remainder
    assert list(curve.remainders) == sorted(curve.remainders, reverse=True)


def test_masses_add_up(made, tmp_path):
    made.save(tmp_path)
    told = explain(tmp_path)
    assert not told.violations
    (mass,) = [v for v in told.values if v.block == "Σ"]
    assert abs(mass.computed - mass.ideal) <= 1e-12 * abs(mass.ideal)


def test_numbers_under_the_axis_do_not_touch(made, monkeypatch):
    drawn = []
    monkeypatch.setattr(meshes, "picture", lambda figure, alt, caption: drawn.append(figure))
    meshes.plot(meshes.run(made))
    (figure,) = drawn
    figure.canvas.draw()
    (axes,) = figure.axes
    texts = [t.get_window_extent() for t in axes.get_xticklabels(which="both") if t.get_text()]
    low, high = axes.bbox.x0, axes.bbox.x1
    seen = sorted((t.x0, t.x1) for t in texts if low <= (t.x0 + t.x1) / 2 <= high)
    assert len(seen) >= 2
    assert all(end < start for (_, end), (start, _) in pairwise(seen))


def test_slices_of_a_large_mesh_have_few_points(monkeypatch):
    large = sumformer.construct("mean((y-x)/(norm2(y-x)+0.09)**1.5)", 2e-2, d=2, n="..500", route="mesh")
    assert large.certificate.latent_dimension > 10_000
    points = []
    monkeypatch.setattr(slices, "_evaluate", lambda made, own, others: points.append(len(own)) or (own[:, 0],) * 2)
    slices.run(large)
    assert sum(points) * large.certificate.latent_dimension <= 2 * slices.WORK / 3

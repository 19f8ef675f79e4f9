"""explain: what a network of each kind holds on an input, beside what it should hold; wrong weights are noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import sumformer
from sumformer.certificates.certificate import sha256
from sumformer.cli.app import app
from sumformer.cli.output import console
from sumformer.errors import InputError, NotSupportedError
from sumformer.experiments.explain import explain, picture
from sumformer.experiments.explain.formula import formula
from sumformer.experiments.explain.picture import draw
from sumformer.experiments.report.figure import new_figure
from sumformer.nn import patterns

GRID = {"architecture": "transformer", "route": "grid"}


def saved(folder, source, epsilon, **how):
    made = sumformer.construct(source, epsilon, **how)
    made.save(folder)
    return made


def tokens(n, d, seed):
    return torch.rand(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_name(found):
    return {v.name: v for v in found.values}


@pytest.mark.parametrize("how", ["step", "relu", "linformer", "performer"])
def test_a_look_up_network_holds_cell_code_mean_and_entry(how, tmp_path):
    given = {"options": {"activation": "relu"}} if how == "relu" else {}
    given |= {"architecture": how} if how.endswith("former") else {}
    saved(tmp_path, "max(y[0]) - x[1]", 0.9, n=3, d=2, **{**GRID, **given})
    for seed in range(20):
        found = explain(tmp_path, tokens(3, 2, seed))
        assert not found.violations
        if found.notes:
            continue  # on a ramp, at times
        values = by_name(found)
        assert list(values) == ["cell", "code", "mean of code", "out 1"]
        assert values["cell"].allowed == values["code"].allowed == values["out 1"].allowed == 0
        assert torch.equal(found.outputs, found.ideal_outputs)
    assert [b.attention for b in found.blocks].index(True) == len(found.blocks) * 2 // 3
    assert [name for b in found.blocks for name, _ in b.complete] == ["cell", "code", "out 1"]
    assert torch.allclose(
        found.attention, torch.full((3, 3), 1.0 if how == "performer" else 1 / 3, dtype=torch.float64)
    )
    assert draw(found, tmp_path / "look.png").stat().st_size > 1000


def test_on_a_ramp_only_the_cell_is_bounded(tmp_path):
    made = saved(tmp_path, "max(y)", 0.4, n=2, **GRID, options={"activation": "relu"})
    edge, ramp = 1 / made.certificate.constants["cells"], made.certificate.constants["ramps"][0]
    found = explain(tmp_path, torch.tensor([[edge + ramp / 8], [0.9]], dtype=torch.float64))
    values = by_name(found)
    assert found.notes == ("token 1 is on a ramp: what follows its cell is not promised",)
    assert 0 < abs(values["cell"].computed - values["cell"].ideal) < values["cell"].allowed == 1
    assert values["out 1"].allowed == inf
    assert not found.violations
    other = explain(tmp_path, torch.tensor([[0.9], [edge + ramp / 8]], dtype=torch.float64))
    assert (by_name(other)["code"].allowed, by_name(other)["mean of code"].allowed) == (0, inf)


def test_a_wrong_weight_is_noticed(tmp_path):
    made = saved(tmp_path, "max(y)", 0.2, n=2, **GRID)
    made.network.blocks[-1].feed_forward.value_2[0] += 0.25
    replace(made).save(tmp_path)  # as if it had been constructed so
    inputs = torch.full((2, 1), 0.9, dtype=torch.float64)
    assert explain(tmp_path, inputs).violations == ["out 1", "the output"]
    made.network.blocks[1].feed_forward.value_2[0] += 1
    replace(made).save(tmp_path)  # as if it had been constructed so
    assert explain(tmp_path, inputs).violations[:2] == ["code", "mean of code"]


@pytest.mark.parametrize(
    ("epsilon", "how", "code"),
    [
        (0.1, {"n": "..4"}, "lanes"),
        (0.02, {"n": 3, "d": 2}, "syndrome"),
        (0.1, {"n": 3, "dtype": "mixed"}, "lanes"),
        (0.1, {"n": 3, "dtype": "float32", "box": "-3:7"}, "syndrome"),
        (1.0, {"n": 3, "positions": True}, "lanes"),
    ],
)
def test_a_grid_sumformer_gets_every_cell_back(epsilon, how, code, tmp_path):
    made = saved(tmp_path, "max(y) - x", epsilon, route="grid", **how)
    assert made.certificate.constants["code"].startswith(code)
    n, d = made.target.tokens.maximum, made.target.input_box.d
    for seed in range(5):
        low, high = (float(end[0]) for end in (made.target.input_box.lower, made.target.input_box.upper))
        found = explain(tmp_path, low + (high - low) * tokens(n, d, seed))
        assert not found.violations
        decoded = [v for v in found.values if v.op == "decoded"]
        assert len(decoded) == n - 1
        assert all(v.allowed == 0 for v in decoded)
        assert torch.allclose(found.outputs, found.ideal_outputs, atol=1e-6, rtol=0)
        assert float((found.outputs - found.wanted).abs().max()) <= made.certificate.total
    assert draw(found, tmp_path / "cells.png").stat().st_size > 1000


def twice_the_others(X):
    return 2 * (X.sum(1, keepdim=True) - X)


def test_a_function_known_by_its_values_is_given_again(tmp_path):
    saved(tmp_path, sumformer.target(twice_the_others, n=3, lipschitz=4.0), 2.0)
    found = explain(tmp_path, function=twice_the_others)
    assert not found.violations
    assert [v.op for v in found.values] == ["own cell", "decoded", "centre", "decoded", "centre"]
    with pytest.raises(InputError, match="give it"):
        explain(tmp_path)


@pytest.mark.parametrize(
    ("source", "how", "name"),
    [
        ("mean(exp(-(x-y)**2)*y)", {}, "coefficients.0"),
        ("log(1.5 + x*mean(y**2))", {"route": "symmetric"}, "coefficients"),
        ("x*mean(y)", {"architecture": "transformer"}, "read_out.weight"),
    ],
)
def test_an_output_that_is_off_is_noticed(source, how, name, tmp_path):
    """Weights of ψ and of the read-out, which no value before the output shows."""
    saved(tmp_path, source, 1e-2, n=3, **how)
    assert not explain(tmp_path, tokens(3, 1, 0)).violations
    weights = load_file(tmp_path / "model.safetensors")
    weights[name] = weights[name] * 1.5
    save_file(weights, tmp_path / "model.safetensors")
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    certificate["weights_sha256"] = sha256(tmp_path / "model.safetensors")
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    assert "the output" in explain(tmp_path, tokens(3, 1, 0)).violations


def test_a_grid_with_its_centres_moved_is_noticed(tmp_path):
    made = saved(tmp_path, "max(y) - x", 0.1, n=3, route="grid")
    made.network.centres[0][:] += 0.2
    replace(made).save(tmp_path)
    assert explain(tmp_path, tokens(3, 1, 0)).violations


@pytest.mark.parametrize(
    ("source", "epsilon", "how"),
    [
        ("x*mean(exp(y))", 1e-3, {"n": 3, "route": "symmetric"}),
        ("x[0]*mean(exp(y[1]*y[0]))", 1e-2, {"n": 2, "d": 2, "route": "symmetric"}),
        ("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", 1e-3, {"d": 2}),
        ("x*mean_others(sigmoid(x-y)) + mean(sin(y)*cos(3*y))", 1e-3, {"n": "2..9"}),
        ("x*i + mean(exp(y))", 1e-3, {"n": 3, "positions": True}),
    ],
)
def test_sums_of_features_and_what_is_made_of_them(source, epsilon, how, tmp_path):
    made = saved(tmp_path, source, epsilon, **how)
    found = explain(tmp_path)
    sums = [v for v in found.values if v.op == "sum over tokens"]
    assert [v.coordinate for v in sums] == list(range(made.certificate.latent_dimension))
    assert [v.name for v in sums] == [f"Σ {name}" for name, _ in found.blocks[0].complete]
    for v in sums:
        assert abs(v.computed - v.ideal) < 1e-12, v.name
    inside = [v for v in found.values if v.block == "ψ"]
    assert inside
    for v in inside:
        assert abs(v.computed - v.ideal) <= 10 * epsilon, v.name
    assert float((found.outputs - found.wanted).abs().max()) <= made.certificate.total
    assert draw(found, tmp_path / "features.png").stat().st_size > 1000


def test_a_compiled_network_of_a_sequence(tmp_path):
    made = saved(tmp_path, "x*i + mean(y)", 1e-2, n=3, positions=True, architecture="transformer")
    found = explain(tmp_path)
    assert not found.violations
    assert float((found.outputs - found.wanted).abs().max()) <= made.certificate.total
    assert draw(found, tmp_path / "stream.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("epsilon", "how"),
    [
        (0.9, {"architecture": "deep-transformer"}),
        (0.9, {"architecture": "sparse-transformer", "pattern": patterns.Star(1)}),
        (0.9, {"architecture": "deep-transformer", "options": {"positions": True}}),
    ],
)
def test_a_deep_network_is_shown_by_trace(epsilon, how, tmp_path):
    made = saved(tmp_path, "x+mean(y)", epsilon, n=2, **how)
    with pytest.raises(NotSupportedError, match="are shown by sumformer trace") as refusal:
        explain(tmp_path)
    command = str(refusal.value).split("sumformer ")[1].split()
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert f"{made.network.attention_layers} attention layers" in shown.output


def test_a_folder_that_is_not_there_can_be_made(tmp_path):
    with pytest.raises(InputError, match=r"sumformer construct .* --as transformer --out"):
        explain(tmp_path / "nowhere")
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "nowhere")])
    assert shown.exit_code == 2
    assert "sumformer construct" in shown.stderr


def test_the_command_shows_every_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "_width", 160)
    saved(tmp_path / "table", "max(y)", 0.4, n=2, **GRID, options={"activation": "relu"})
    saved(tmp_path / "grid", "max(y)", 0.4, n=2, route="grid")
    saved(tmp_path / "sums", "x*mean(exp(y))", 0.1)
    for name, words in {
        "table": ("cell, mean → out", "+ attention", "a mean over inputs"),
        "grid": ("decoded", "centre", "certified"),
        "sums": ("mean(exp(y))", "b1 = exp(y[0] - 0.5)", "φ, Σ, ψ by route sums"),
    }.items():
        shown = CliRunner().invoke(app, ["explain", str(tmp_path / name)])
        assert shown.exit_code == 0, shown.output
        for word in words:
            assert word in shown.output, shown.output
        as_json = CliRunner().invoke(app, ["explain", str(tmp_path / name), "--json"])
        assert '"violations": []' in as_json.output


def test_every_value_of_a_compiled_network_has_its_formula(tmp_path):
    saved(tmp_path, "exp(-norm2(x - mean(y)))", 0.1, n=3, d=1, architecture="transformer")
    found = explain(tmp_path, tokens(3, 1, 0))
    formulas = {v.name: v.formula for v in found.values}
    assert formulas["u0#0"] == "(x[0] - 1/2)/(1/2)"
    assert formulas["mean u0#0#1"] == "mean of u0#0"
    assert formulas["v2"] == "0.5*mean u0#0#1 + 0.5"
    assert formulas["v3"] == "(0.5*u0#0 - v2 + 0.5)**2"
    assert formulas["exp#4"] == "exp(-v3)"
    shown = CliRunner().invoke(app, ["explain", str(tmp_path)])
    assert "v3 = (0.5*u0#0 - v2 + 0.5)**2" in shown.output


def test_a_product_and_a_sum_as_formulas():
    halves = {"of": ["a", "b"], "weights": [1.0, -0.5], "offset": 0.0}
    assert formula({"op": "product", "of": [halves, {"of": ["c"], "weights": [1.0], "offset": 0.0}]}, {}) == (
        "(a - 0.5*b)*c"
    )
    assert formula({"op": "sum", "of": {"of": [], "weights": [], "offset": 0.0}}, {}) == "0"
    assert formula({"op": "function", "of": halves, "expression": "1/x"}, {}) == "1/(a - 0.5*b)"
    assert formula({"op": "function", "of": halves, "expression": "sqrt(x)"}, {}) == "sqrt(a - 0.5*b)"
    assert formula({"op": "function", "of": halves, "expression": "x*sin(x)"}, {}).startswith("(a - 0.5*b)*sin(")


@pytest.mark.parametrize(("how", "place"), [({"d": 2}, 0), ({"d": 2, "n": 2, "architecture": "transformer"}, 1)])
def test_pictures_count_tokens_from_one(how, place, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(picture, "new_figure", lambda *size: drawn.append(new_figure(*size)) or drawn[-1])
    saved(tmp_path, "mean(x*y)", 1e-2, **how)
    draw(explain(tmp_path, tokens(2, 2, 0)), tmp_path / "drawn.png")
    (figure,) = drawn
    figure.canvas.draw()
    texts = {text.get_text() for text in figure.axes[place].get_xticklabels()} - {""}
    assert {"1", "2"} <= texts <= {"0", "1", "2", "3"}

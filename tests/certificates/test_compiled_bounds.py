"""B' of a `CompiledTransformer`, term by term: weights that were moved, and roundings that all go one way."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampered import Sample, Samples, Tampered, put
from torch import Tensor

from sumformer.certificates.checker import check
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct, load

pytestmark = pytest.mark.usefixtures("one_thread")
OPTIONS = {"n": 2, "architecture": "transformer"}
SAMPLES: dict[str, Sample] = {
    "linear": ("x - mean(y)", 0.1, {}),
    "linformer": ("x - mean(y)", 0.1, {"architecture": "linformer"}),
    "performer": ("x - mean(y)", 0.1, {"architecture": "performer"}),
    "corners": ("max(mean(abs(y - 0.4)), x)", 0.1, {}),  # a function, and what is cleared, before and behind attention
    "ratio": ("x/(1 + mean(y))", 0.1, {}),
    "linear product": ("x + mean(y) + x*mean(y)/10", 0.1, {}),
    "saws": ("x*mean(y)", 0.002, {"options": {"prefer": "parameters"}}),
    "square": ("(x + mean(y))**2", 0.005, {"options": {"prefer": "parameters"}}),
}
STILL = ("W_Q.weight", "W_K.weight", ".E", ".omega")  # nothing else than 0 is taken there, or it does not matter
GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 21, dtype=torch.float64)] * 2)[:, :, None]


def worst(made: Construction, X: Tensor = GRID) -> float:
    with torch.no_grad():
        return float((made.target(X) - made.network(X)).abs().max())


@pytest.mark.parametrize(
    ("source", "epsilon"),
    [
        ("x + mean(y) + (x - 1/2)*(mean(y) - 1/2)/100", 0.1),  # a product that no unit writes
        ("x + mean(y) + x*mean(y)/10", 0.1),  # one that is linear
        ("x*mean(y)", 0.1),
        ("x*mean(y)", 0.001),
        ("(x + mean(y))**2", 0.2),
        ("exp(mean(y)) + x", 0.1),
    ],
)
def test_what_gadgets_leave_out(tmp_path: Path, source: str, epsilon: float) -> None:
    construct(source, epsilon, **OPTIONS).save(tmp_path)
    off, bound = worst(load(tmp_path)), check(tmp_path).bound
    assert off <= bound <= 1.5 * off


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bound_holds_whatever_the_weights_are(samples: Samples, name: str, tmp_path: Path) -> None:
    """Weights of every kind moved by a tenth: where B' is finite it is a bound, and some of them it meets."""
    saved = Tampered(samples(name), tmp_path / "net")
    weights, ratios = load(saved.folder).network.state_dict(), []
    for key in (k for k in weights if not k.endswith(STILL) and "place" not in k):
        for place in list(np.ndindex(*weights[key].shape))[: None if key.endswith("b_2") else 3]:
            old = float(weights[key][place])
            for by in (0.1, -0.1):
                saved.weights(lambda t, at=(key, place), new=old + by: t[at[0]].__setitem__(at[1], new))
                bound = check(saved.folder).bound
                if math.isfinite(bound):
                    off = worst(load(saved.folder))
                    assert off <= bound, (key, place, by)
                    ratios.append(bound / off)
            saved.weights(lambda t, at=(key, place), old=old: t[at[0]].__setitem__(at[1], old))
    assert len(ratios) > 10
    assert min(ratios) < 1.1


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("linear", ("W_V.weight", "W_O.weight")),
        ("linformer", ("F", "W_O.weight")),
        ("performer", ("W_V.weight", "W_O.weight")),
    ],
)
def test_factors_of_the_mean_multiply(samples: Samples, tmp_path: Path, name: str, keys: tuple[str, ...]) -> None:
    """Two weights of 4 give 16 times the mean, not 7 times."""
    saved = Tampered(samples(name), tmp_path / "net")
    saved.weights(lambda t: t.update({k: 4 * v for k, v in t.items() if k.endswith(keys)}))
    assert 15 / 2 - 1e-9 <= worst(load(saved.folder)) <= check(saved.folder).bound < math.inf


# ---- |f − S| and |S − program|


@pytest.mark.parametrize(
    ("source", "epsilon", "options"),
    [("mean(exp(x*y/3))", 0.1, {}), ("exp(x*mean(y))", 0.2, {"route": "symmetric"})],
)
def test_coefficients_that_were_left_out(tmp_path: Path, source: str, epsilon: float, options: Any) -> None:
    """The error is larger than all that gadgets and rounding may do."""
    construct(source, epsilon, **OPTIONS, **options).save(tmp_path)
    off, parts = worst(load(tmp_path)), dict(check(tmp_path).terms)
    assert parts["gadgets"] + parts["rounding and sum head"] < off <= sum(parts.values())


def test_what_lies_above_the_degree_of_interpolation(tmp_path: Path) -> None:
    """f = x·mean + T_4(x), which vanishes at the nodes of N = 3: S and N are made for x·mean."""
    construct("x*mean(y)", 0.1, route="symmetric", box="-1:1", **OPTIONS).save(tmp_path / "net")
    saved, rho, maxima = Tampered(tmp_path / "net", tmp_path / "changed"), 1e3, (5.01e11, 253.0)

    def change(c: dict[str, Any]) -> None:
        constants = c["constants"]["ideal"]
        assert (constants["own_degrees"], constants["other_degrees"]) == ([3], [2])
        of_y, of_x = (4 * M * rho**-N / (rho - 1) for N, M in ((2, maxima[1]), (3, maxima[0])))
        constants["remainder"] = of_y + (2 / math.pi * math.log(3) + 1) * of_x
        constants["ellipses"] = [{"variable": v, "rho": rho, "maximum": M} for v, M in enumerate(maxima)]
        c.update(target="x*mean(y) + 8*x**4 - 8*x**2 + 1", total=100.0, epsilon=100.0)

    saved.edit("certificate", change)
    bound = check(saved.folder).bound
    assert 1 <= worst(load(saved.folder), 2 * GRID - 1) <= bound < math.inf


def test_a_program_that_is_not_the_sumformer(samples: Samples, tmp_path: Path) -> None:
    """Ledger and read-out say 3/2 f."""
    saved = Tampered(samples("linear"), tmp_path / "net")

    def scale(data: Any) -> None:
        for f in data["ledger"]["outputs"]:
            f["weights"], f["offset"] = [1.5 * w for w in f["weights"]], 1.5 * f["offset"]

    saved.edit("config", scale).weights(lambda t: t.update({"read_out.weight": 1.5 * t["read_out.weight"]}))
    assert 0.2 < worst(load(saved.folder)) <= check(saved.folder).bound < math.inf


def test_a_coefficient_that_network_and_sumformer_share(tmp_path: Path) -> None:
    """S, program and read-out are f + ½, so that only |f − S| knows."""
    construct("exp(x*mean(y))", 0.2, route="symmetric", **OPTIONS).save(tmp_path / "net")
    saved = Tampered(tmp_path / "net", tmp_path / "changed")
    assert read(saved)["ideal"]["terms"][0] == [0, 0]

    def change(t: dict[str, np.ndarray]) -> None:
        t["ideal.coefficients"][0] += 0.5
        t["read_out.weight"][0, 0] += 0.5

    saved.weights(change).edit("config", put("ledger", "outputs", 0, "offset")(lambda old: old + 0.5))
    saved.edit("certificate", put("constants", "ideal", "coefficients")(lambda old: old + 0.5))
    assert 0.5 <= worst(load(saved.folder)) <= check(saved.folder).bound < math.inf


# ---- units that are moved together with what the ledger says of them


def read(saved: Tampered) -> Any:
    return json.loads((saved.folder / "config.json").read_text())


def moved(saved: Tampered, gadget: int, by: float) -> Tampered:
    """b_1 of a gadget of one unit by so much, and what it writes back by the constant: w R(s + b + by) − w·by."""
    entry = read(saved)["ledger"]["gadgets"][gadget]["stages"][0][0]
    (at,), unit, prefix = entry["writes"], entry["units"][0], f"blocks.{entry['block']}.feed_forward."
    back = 0.0

    def change(t: dict[str, np.ndarray]) -> None:
        nonlocal back
        (k,) = np.flatnonzero(t[prefix + "place_2"][1] == unit)
        back = by * float(t[prefix + "value_2"][k])
        t[prefix + "b_1"][unit] += by
        t[prefix + "b_2"][int(at)] -= back

    saved.weights(change)
    place = ("ledger", "gadgets", gadget, "stages", 0, 0, "constants", at)
    return saved.edit("config", put(*place)(lambda old: old - back))


def kind(saved: Tampered, wanted: str) -> int:
    return next(i for i, g in enumerate(read(saved)["ledger"]["gadgets"]) if g["kind"] == wanted)


def test_an_identity_that_is_cut_off(samples: Samples, tmp_path: Path) -> None:
    """R(s + b) + 1/10 with s + b < 0 for small means: there it is 1/10 too much."""
    saved = Tampered(samples("linear"), tmp_path / "net")
    moved(saved, kind(saved, "identity"), -0.1)
    assert 0.0999 < worst(load(saved.folder)) <= check(saved.folder).bound <= 0.11


def test_a_linear_product_that_is_cut_off(samples: Samples, tmp_path: Path) -> None:
    saved = Tampered(samples("linear product"), tmp_path / "net")
    before = check(saved.folder).bound
    moved(saved, kind(saved, "product"), -0.8)
    assert 1.5 * before < worst(load(saved.folder)) <= check(saved.folder).bound < math.inf


def test_what_a_linear_product_makes_of_the_errors_it_reads(samples: Samples, tmp_path: Path) -> None:
    """The mean is off by 1/10, and with room for that nothing is cut off: (1 + ½/10)/10, and what is left out."""
    saved = Tampered(samples("linear product"), tmp_path / "net")
    for gadget in range(len(read(saved)["ledger"]["gadgets"])):
        moved(saved, gadget, 1.0)
    at = next(v["at"] for v in read(saved)["ledger"]["values"] if v["name"] == "v2")
    saved.weights(lambda t: t["blocks.0.feed_forward.b_2"].__setitem__(at, t["blocks.0.feed_forward.b_2"][at] - 0.1))
    off, bound = worst(load(saved.folder)), check(saved.folder).bound
    assert off <= bound <= 1.001 * off


def test_what_a_saw_leaves_where_another_begins(tmp_path: Path) -> None:
    """The last stage of x·mean does not clear its workspace, in which the product with x is then made."""
    construct("x*mean(y)*x", 0.01, **OPTIONS, options={"prefer": "parameters"}).save(tmp_path / "net")
    saved = Tampered(tmp_path / "net", tmp_path / "changed")
    before, entry = check(saved.folder).bound, read(saved)["ledger"]["gadgets"][kind(saved, "product")]["stages"][-1][1]
    name, unit = f"blocks.{entry['block']}.feed_forward.b_1", entry["units"][0]
    saved.weights(lambda t: t[name].__setitem__(unit, t[name][unit] + 0.05))
    assert 5 * before < worst(load(saved.folder)) <= check(saved.folder).bound < math.inf


# ---- rounding

ROUNDED: dict[str, tuple[str, str, Callable[[Fraction, Fraction], Fraction]]] = {
    "read-in": ("x - 1000000 + 0*mean(y)", "2999999/3:3000001/3", lambda x, y: x - 10**6),  # 3x is rounded
    "read-out": ("x + 1000000.1 + 0*mean(y)", "0:1", lambda x, y: x + Fraction(10000001, 10)),
    "cancelling": ("abs(mean(y)+x+33333.3-33333.1)", "0:1", lambda x, y: (x + y) / 2 + x + Fraction(1, 5)),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_networks_against_rationals(tmp_path: Path, name: str) -> None:
    source, box, exact = ROUNDED[name]
    made = construct(source, 1e-3, box=box, **OPTIONS)
    made.save(tmp_path)
    low, side = (float(v) for v in (made.target.box.lower[0], 2 * made.target.box.radius[0]))
    X = low + side * torch.linspace(0.01, 0.99, 2000, dtype=torch.float64).reshape(-1, 2, 1)
    with torch.no_grad():
        got = made.network(X)[:, 0, 0].tolist()
    rows = [[Fraction(v) for v in row] for row in X[..., 0].tolist()]
    off = max(abs(Fraction(v) - exact(*row)) for v, row in zip(got, rows, strict=True))
    assert 0 < off <= Fraction(check(tmp_path).bound)


def test_units_of_a_block_are_rounded(samples: Samples, tmp_path: Path) -> None:
    """R(s + 2³⁰) − 2³⁰ is known to 2⁻²³."""
    saved = Tampered(samples("linear"), tmp_path / "net")
    moved(saved, kind(saved, "identity"), 2.0**30)
    assert 2.0**-25 < worst(load(saved.folder)) <= check(saved.folder).bound < 2.0**-19


@pytest.mark.parametrize("architecture", ["transformer", "linformer", "performer"])
def test_the_mean_of_many_tokens_is_rounded(tmp_path: Path, architecture: str) -> None:
    """1000 tokens z, a thousandth of each added one after the other: one of the orders that are certified."""
    n = 1000
    construct("x - mean(y)", 1e-3, n=n, box="-1:1", architecture=architecture).save(tmp_path)
    z = np.linspace(0.5, 1, 1001)
    mean = np.zeros_like(z)
    for _ in range(n):
        mean = mean + (1 / n) * z
    off = max(abs(Fraction(m) - Fraction(v)) for m, v in zip(mean.tolist(), z.tolist(), strict=True))
    assert 0 < off <= Fraction(check(tmp_path).bound)

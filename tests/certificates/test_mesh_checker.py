"""check of a `MeshSumformer`: honest folders verify, B' is above what is measured, and forgeries are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mesh_folders import MeshKernelSpec, Spec, sigmoid, term, write
from tampered import Change, Tampered, accepted, put

from sumformer.certificates.certificate import OF_A_SUMFORMER, OWN_TOKEN, TORCH_FUNCTIONS
from sumformer.certificates.checker import check
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.targets.target import target as make_target

SIGMOID = MeshKernelSpec("sigmoid((x[0] - y[0])/0.01)", lambda z: sigmoid(z / 0.01), [0], [400], 8, [0.02])
GRAVITY = MeshKernelSpec(
    "sqrt((y[0] - x[0])**2 + (y[1] - x[1])**2 + 0.05)**-3",
    lambda a, b: np.sqrt(a**2 + b**2 + 0.05) ** -3,
    [0, 1],
    [72, 76],
    8,
    [0.12, 0.12],
)
WIDE = MeshKernelSpec("exp(-4*(x[0] - y[0])**2)", lambda z: np.exp(-4 * z**2), [0], [64], 10, [0.4])
NARROW = MeshKernelSpec("exp(-200*(x[0] - y[0])**2)", lambda z: np.exp(-200 * z**2), [0], [300], 10, [0.1])
WAVE = MeshKernelSpec("cos(9*x[0] - 9*y[0])", lambda z: np.cos(9 * z), [0], [64], 10, [0.5])
BELL = [
    MeshKernelSpec(f"exp(-20*(x[{c}] - y[{c}])**2)", lambda z: np.exp(-20 * z**2), [c], [48 + c], 8, [0.2])
    for c in range(2)
]
LAPLACE = MeshKernelSpec(
    "exp(-10*abs(x[0] - y[0]))", lambda z: np.exp(-10 * abs(z)), [0], [2000], 2, slants=[(10.0, 10.0)]
)
HAT = MeshKernelSpec(
    "max(0, 1 - norm(cat(x[0] - y[0], x[1] - y[1]))/0.5)",
    lambda a, b: np.maximum(0, 1 - np.sqrt(a**2 + b**2) / 0.5),
    [0, 1],
    [300, 301],
    2,
    slants=[(2.0, None), (2.0, None)],
    sums="frequencies",
)
MEAN_Y = [[[0], "1/2"], [[1], "1/2"]]  # y = (1 + v)/2 on [0, 1]
QUOTIENT = "sum(exp(-{k}*norm2(x - y))*y)/sum(exp(-{k}*norm2(x - y)))"


def _gravity(c: int) -> list[dict[str, Any]]:
    own, gamma = f"2*(x[{c}] - 0.5)", [int(k == c) for k in range(2)]
    return [term(polynomial=[[gamma, "1/2"]]), term(own=own, polynomial=[[[0, 0], "-1/2"]])]


SOFTRANK = Spec("mean(sigmoid((x - y)/0.01))", [SIGMOID], [[0]], [[[term()]]])
SPECS = {
    "softrank": SOFTRANK,
    "mixed": replace(SOFTRANK, box="0.1:0.7", arithmetic="mixed", n="..100000"),
    "gravity": Spec(
        "mean((y - x)/(norm2(y - x) + 0.05)**1.5)", [GRAVITY], [[0]], [[_gravity(0), _gravity(1)]], d=2, group=64
    ),
    "quotient": Spec(QUOTIENT.format(k=4), [WIDE], [[0]], [[[term(polynomial=MEAN_Y)]], [[term()]]]),
    "own": Spec(
        QUOTIENT.format(k=200),
        [NARROW],
        [[0]],
        [[[term(polynomial=MEAN_Y)]], [[term()]]],
        n="..100",
        assumptions=(*OF_A_SUMFORMER, OWN_TOKEN),
    ),
    "laplace": Spec(
        "mean(exp(-10*abs(x - y)))",
        [replace(LAPLACE, sums="frequencies", slants=[(10.0, None)])],
        [[0]],
        [[[term()]]],
        box="-0.3:0.4",
    ),
    "hat": Spec("mean(max(0, 1 - norm(x - y)/0.5))", [HAT], [[0]], [[[term(d=2)]]], d=2),
    "laplace quotient": Spec(
        "sum(exp(-10*abs(x - y))*y)/sum(exp(-10*abs(x - y)))",
        [LAPLACE],
        [[0]],
        [[[term(polynomial=MEAN_Y)]], [[term()]]],
    ),
    "own laplace": Spec(
        "sum(exp(-40*abs(x - y))*y)/sum(exp(-40*abs(x - y)))",
        [
            MeshKernelSpec(
                "exp(-40*abs(x[0] - y[0]))",
                lambda z: np.exp(-40 * abs(z)),
                [0],
                [8000],
                2,
                slants=[(40.0, 40.0)],
                sums="frequencies",
            )
        ],
        [[0]],
        [[[term(polynomial=MEAN_Y)]], [[term()]]],
        n="..50",
        assumptions=(*OF_A_SUMFORMER, OWN_TOKEN),
    ),
    "gravity by frequencies": Spec(
        "mean((y - x)/(norm2(y - x) + 0.05)**1.5)",
        [replace(GRAVITY, sums="frequencies")],
        [[0]],
        [[_gravity(0), _gravity(1)]],
        d=2,
        group=64,
    ),
    "others": Spec("sum_others(exp(-20*norm2(x - y)))", BELL, [[0, 1]], [[[term(d=2)]]], d=2, n="2..50"),
    "channel": Spec(
        "mean(exp(y)*cos(9*x - 9*y))",
        [WAVE],
        [[0]],
        [[[term()]]],
        channels=["exp(y[0])"],
        assumptions=(*OF_A_SUMFORMER, TORCH_FUNCTIONS),
    ),
    "plain": Spec(
        "mean(sigmoid((x - y)/0.01)) + mean(y**2)",
        [SIGMOID],
        [[0], []],
        [[[term()]], [[term(polynomial=[[[0], "3/8"], [[1], "1/2"], [[2], "1/8"]], product=1)]]],
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write(tmp_path_factory.mktemp(name), SPECS[name])
        return made[name]

    return get


@pytest.fixture
def saved(folders: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Tampered]:
    return lambda name: Tampered(folders(name), tmp_path / name)


def worst_error(folder: Path, seed: int = 0) -> float:
    """|f − N| over random tokens, corners, tokens on nodes and clusters with one token elsewhere; f in float64."""
    certificate = json.loads((folder / "certificate.json").read_text())
    f = make_target(certificate["target"], n=certificate["tokens"], d=certificate["d"], box=certificate["box"])
    net = MeshSumformer.from_pretrained(folder).requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    low, high = (torch.tensor([float(b) for b in ends], dtype=torch.float64) for ends in (f.box.lower, f.box.upper))
    worst = 0.0
    for n in (n for n in (1, 2, 3, 8, 50) if f.tokens.allows(n)):
        X = torch.rand(12, n, f.d, generator=generator, dtype=torch.float64)
        corners = torch.randint(0, 2, (12, n, f.d), generator=generator).double()
        clusters = corners[:, :1].expand(-1, n, -1).clone()
        clusters[:, 0] = X[:, 0]
        near = X[:, :1] + 0.01 * (X - 0.5)
        for tokens in (X, corners, clusters, near, (X * 40).round() / 40):
            points = (low + (high - low) * tokens.clamp(0, 1)).to(net.outside)
            points = points[f.box.contains(points).all(-1)]
            if len(points):
                worst = max(worst, float((f(points.double()) - net(points).double()).abs().max()))
    return worst


@pytest.mark.parametrize("name", SPECS)
def test_honest_folders_verify_and_their_bound_holds(name: str, folders: Callable[[str], Path]) -> None:
    result = check(folders(name))
    assert result.verified, result.failures
    assert 0 < result.bound <= result.claimed <= result.epsilon
    assert worst_error(folders(name)) <= result.bound < 1e-2
    assert result.seconds < 20


@pytest.mark.parametrize(
    "name",
    ["softrank", "gravity", "quotient", "others", "own", "hat", "laplace quotient", "own laplace"],
)
def test_the_recomputed_bound_holds_whatever_the_samples_are(name: str, saved: Callable[[str], Tampered]) -> None:
    rng = np.random.default_rng(3)
    for trial, size in enumerate((1e-12, 1e-6, 1e-3)):
        folder = saved(name)

        def change(weights: dict[str, Any], size: float = size) -> None:
            for samples in weights.values():
                samples += size * rng.choice([-1.0, 1.0], samples.shape)

        result = check(folder.weights(change).folder)
        assert worst_error(folder.folder, trial) <= result.bound
        assert result.verified <= (size < 1e-3)


def test_the_rounding_of_many_tokens_is_covered(folders: Callable[[str], Path]) -> None:
    """Σ in float64 beside Σ of the same tokens with far fewer roundings: one token, counted often."""
    net = MeshSumformer.from_pretrained(folders("softrank")).requires_grad_(False)
    X = torch.full((1, 100_000, 1), 0.3137, dtype=torch.float64)
    rounding = dict(check(folders("softrank")).terms)["rounding"]
    assert abs(float(net(X)[0, 0] - net(X[:, :1])[0, 0])) <= rounding


EDITS: dict[str, tuple[str, Change]] = {
    "odd width": ("config", put("kernels", 0, "width")(7)),
    "narrow stencil": ("config", put("kernels", 0, "width")(2)),
    "wide stencil": ("config", put("kernels", 0, "width")(18)),
    "no intervals": ("config", put("kernels", 0, "intervals")([0])),
    "absurd intervals": ("config", put("kernels", 0, "intervals")([2**22])),
    "another mesh": ("config", put("kernels", 0, "intervals")([399])),
    "two intervals": ("config", put("kernels", 0, "intervals")([400, 400])),
    "another kernel": ("config", put("kernels", 0, "expression")("sigmoid((x[0] - y[0])/0.02)")),
    "a sharper kernel": ("config", put("kernels", 0, "expression")("sigmoid((x[0] - y[0])/0.01 + 1)")),
    "no difference": ("config", put("kernels", 0, "expression")("sigmoid((x[0] - 2*y[0])/0.01)")),
    "a stray token": ("config", put("kernels", 0, "expression")("sigmoid((x[0] - y[0])/0.01)*(1 + 0*x[0])")),
    "a coordinate twice": ("config", put("kernels", 0, "coordinates")([0, 0])),
    "a coordinate beyond": ("config", put("kernels", 0, "coordinates")([1])),
    "group 1": ("config", put("group")(1)),
    "group 2^21": ("config", put("group")(2**21)),
    "float32": ("config", put("arithmetic")("float32")),
    "mixed": ("config", put("arithmetic")("mixed")),
    "unknown key": ("config", lambda c: c.update(support=[])),
    "a channel's support": ("config", lambda c: c["channels"][0].update(support=[])),
    "a channel of x": ("config", put("channels", 0, "factor")("x[0]")),
    "an unused channel": ("config", lambda c: c["channels"].append({"factor": "y[0]"})),
    "an unused product": ("config", lambda c: c["products"].append({"kernels": []})),
    "a kernel twice": ("config", put("products", 0, "kernels")([0, 0])),
    "a kernel that is not there": ("config", put("products", 0, "kernels")([1])),
    "another polynomial": ("config", put("reductions", 0, "components", 0, 0, "polynomial")([[[0], "1"], [[1], "1"]])),
    "a term too many": ("config", lambda c: c["reductions"][0]["components"][0].append(term())),
    "own factor": ("config", put("reductions", 0, "components", 0, 0, "own")("1 + x[0]")),
    "centre": ("config", put("centre")(["0.4"])),
    "radius": ("config", put("radius")(["1"])),
    "another type": ("config", put("type")("ExpressionSumformer")),
    "route": ("certificate", put("route")("sums")),
    "latent dimension": ("certificate", put("latent_dimension")(406)),
    "epsilon": ("certificate", put("epsilon")(1e-12)),
    "tokens": ("certificate", lambda c: c.update(tokens="any..5", target="sum(y)")),
    "positions": ("certificate", lambda c: c["constants"].update(positions=True)),
    "unknown constant": ("certificate", lambda c: c["constants"].update(degree=3)),
    "no kernels": ("certificate", lambda c: c["constants"].update(kernels=[])),
    "assumption missing": ("certificate", lambda c: c["assumptions"].pop()),
    "assumption added": ("certificate", lambda c: c["assumptions"].append("tokens are pleasant")),
    "no reach": ("certificate", put("constants", "kernels", 0, "strips", 0, "reach")(0.0)),
    "negative reach": ("certificate", put("constants", "kernels", 0, "strips", 0, "reach")(-0.02)),
    "a reach across the pole": ("certificate", put("constants", "kernels", 0, "strips", 0, "reach")(0.04)),
    "a reach too short": ("certificate", put("constants", "kernels", 0, "strips", 0, "reach")(0.01)),
    "maximum": ("certificate", put("constants", "kernels", 0, "strips", 0, "maximum")(0.5)),
    "no strips": ("certificate", put("constants", "kernels", 0, "strips")([])),
    "another coordinate": ("certificate", put("constants", "kernels", 0, "strips", 0, "coordinate")(1)),
    "range": ("certificate", put("constants", "kernels", 0, "range")([0.1, 0.9])),
    "remainder": ("certificate", put("constants", "kernels", 0, "remainder")(lambda r: r / 2)),
    "dropped": ("certificate", put("constants", "kernels", 0, "dropped")(1.0)),
    "recorded width": ("certificate", put("constants", "kernels", 0, "width")(10)),
    "recorded intervals": ("certificate", put("constants", "kernels", 0, "intervals")([400.0])),
    "a smaller claim": (
        "certificate",
        lambda c: (c["terms"][0].update(bound=c["terms"][0]["bound"] / 2), c.update(total=c["total"] / 2)),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_forgeries_are_refused(name: str, saved: Callable[[str], Tampered]) -> None:
    which, change = EDITS[name]
    folder = saved("softrank")
    assert accepted(folder.folder)
    assert not accepted(folder.edit(which, change).folder)


SLANTED: dict[str, tuple[str, Change]] = {
    "half the slope": ("certificate", put("constants", "kernels", 0, "slants", 0, "slope")(5.0)),
    "a negative slope": ("certificate", put("constants", "kernels", 0, "slants", 0, "slope")(-10.0)),
    "half the slope of the logarithm": ("certificate", put("constants", "kernels", 0, "slants", 0, "log_slope")(5.0)),
    "no slope of the logarithm": ("certificate", put("constants", "kernels", 0, "slants", 0, "log_slope")(None)),
    "no slants": ("certificate", put("constants", "kernels", 0, "slants")([])),
    "a strip": (
        "certificate",
        put("constants", "kernels", 0, "strips")([{"coordinate": 0, "reach": 0.1, "maximum": 2.0}]),
    ),
    "another coordinate": ("certificate", put("constants", "kernels", 0, "slants", 0, "coordinate")(1)),
    "a smaller share": ("certificate", put("constants", "kernels", 0, "relative")(lambda r: r / 3)),
    "remainder": ("certificate", put("constants", "kernels", 0, "remainder")(lambda r: r / 2)),
    "sums as recorded": ("certificate", put("constants", "kernels", 0, "sums")("frequencies")),
    "sums as computed": ("config", put("kernels", 0, "sums")("frequencies")),
    "unknown sums": ("config", put("kernels", 0, "sums")("guesses")),
    "a wider stencil": ("config", put("kernels", 0, "width")(4)),
    "a steeper kernel": ("config", put("kernels", 0, "expression")("exp(-20*abs(x[0] - y[0]))")),
    "a jump": ("config", put("kernels", 0, "expression")("exp(-10*abs(x[0] - y[0])) + sqrt(abs(x[0] - y[0]))")),
}


@pytest.mark.parametrize("name", SLANTED)
def test_forged_slants_are_refused(name: str, saved: Callable[[str], Tampered]) -> None:
    which, change = SLANTED[name]
    folder = saved("laplace quotient")
    assert accepted(folder.folder)
    assert not accepted(folder.edit(which, change).folder)


TENSORS: dict[str, Callable[[dict[str, Any]], None]] = {
    "missing": lambda w: w.pop("samples.0") is None,
    "another name": lambda w: w.update({"samples.1": w["samples.0"]}),
    "another shape": lambda w: w.update({"samples.0": w["samples.0"][:-1].copy()}),
    "float32": lambda w: w.update({"samples.0": w["samples.0"].astype(np.float32)}),
    "nan": lambda w: w["samples.0"].__setitem__(3, np.nan),
    "infinite": lambda w: w["samples.0"].__setitem__(3, np.inf),
    "one sample": lambda w: w["samples.0"].__setitem__(0, 1e-3),
    "beyond the box": lambda w: w["samples.0"].__setitem__(-1, 0.0),
    "turned round": lambda w: w.update({"samples.0": w["samples.0"][::-1].copy()}),
}


@pytest.mark.parametrize("name", TENSORS)
def test_other_samples_are_refused(name: str, saved: Callable[[str], Tampered]) -> None:
    assert not accepted(saved("softrank").weights(TENSORS[name]).folder)


def test_kernels_of_one_product_have_no_common_coordinate(saved: Callable[[str], Tampered]) -> None:
    def change(config: Any) -> None:
        config["kernels"][1] |= {"expression": config["kernels"][0]["expression"], "coordinates": [0]}

    result = check(saved("others").edit("config", change).folder)
    assert any("one coordinate" in why for why in result.failures)


def test_a_kernel_lists_the_coordinates_that_it_mentions(saved: Callable[[str], Tampered]) -> None:
    result = check(saved("others").edit("config", put("kernels", 0, "coordinates")([1])).folder)
    assert any("coordinates that are listed" in why for why in result.failures)

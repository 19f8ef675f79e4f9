"""check(directory): honest constructions verify, and whatever makes the claim false, or the files lie, does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from sumformer.certificates.certificate import sha256
from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError
from sumformer.theorems.construction import construct, load

GAUSS = "sum(exp(-{k}*norm2(x - y))*y)/sum(exp(-{k}*norm2(x - y)))"
SAMPLES: dict[str, tuple[str, float, dict[str, Any]]] = {
    "gauss": (GAUSS.format(k=4), 1e-3, {"d": 2}),
    "gauss32": (GAUSS.format(k=1), 1e-3, {"d": 2, "dtype": "float32"}),
    "mixed": (GAUSS.format(k=4), 1e-3, {"d": 1, "dtype": "mixed"}),
    "others": (GAUSS.format(k=1).replace("sum", "sum_others"), 1e-3, {"d": 1}),
    "kde": ("mean(exp(-norm2(x - y)/0.245))", 1e-3, {"d": 2}),
    "softrank": ("mean(sigmoid((x - y)/0.1))", 1e-6, {"d": 1}),
    "softrank32": ("mean(sigmoid((x - y)/0.1))", 1e-2, {"d": 1, "dtype": "float32"}),
    "gravity": ("mean((y - x)/sqrt(norm2(x - y) + 0.25)**3)", 1e-3, {"d": 1}),
    "figure2": ("x + 7*x**2 + 3*x*sum_others(y)**3", 1e-6, {"d": 4, "n": 3}),
    "zscore": ("(x - mean(y))/sqrt(mean((y - mean(y))**2) + 0.1)", 1e-6, {"d": 2}),
    "logsum": ("log(1 + sum(norm2(x - y)))", 1e-6, {"d": 1, "n": 8}),
    "joint": ("mean(exp(x*y)*cos(x + y))", 1e-4, {"d": 1, "box": "-1:2"}),
    "log": ("mean(log(3 + x*y + y))", 1e-5, {"d": 1}),
    "nested": ("mean((y - mean(exp(x*y)*y))**2)", 1e-3, {"d": 1}),
    "sum_others": ("sum_others(exp(x*y))", 1e-3, {"d": 1, "n": "..50"}),
    "softmax": ("exp(x)/sum(exp(y))", 1e-6, {"d": 1, "n": "..1000"}),
    "decimal_box": ("mean(exp(x*y)/(2 + x*y))", 1e-4, {"d": 1, "box": "0.1:0.7", "n": "..1000", "dtype": "float32"}),
    "distance": ("norm(x - mean(y))", 1e-6, {"d": 2}),
}
_BUILT: dict[str, Path] = {}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A saved construction by name, built once."""

    def get(name: str) -> Path:
        if name not in _BUILT:
            source, epsilon, options = SAMPLES[name]
            folder = tmp_path_factory.mktemp(name)
            construct(source, epsilon, **options).save(folder)
            _BUILT[name] = folder
        return _BUILT[name]

    return get


class Saved:
    """A copy of a saved construction that can be edited; hashes are rewritten, so that only the proof can object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def edit(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        path = self.folder / f"{name}.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))
        self.sign()

    def weights(self, change: Callable[[dict[str, np.ndarray]], None]) -> None:
        path = self.folder / "model.safetensors"
        tensors = {k: v.copy() for k, v in load_file(path).items()}
        change(tensors)
        save_file(tensors, path)
        self.sign()

    def sign(self) -> None:
        path = self.folder / "certificate.json"
        data = json.loads(path.read_text())
        data["weights_sha256"] = sha256(self.folder / "model.safetensors")
        data["config_sha256"] = sha256(self.folder / "config.json")
        path.write_text(json.dumps(data))


@pytest.fixture
def saved(samples: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[[str], Saved]]:
    def copy(name: str) -> Saved:
        target = tmp_path / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(samples(name), target)
        return Saved(target)

    return copy


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_constructions_verify(name, samples):
    result = check(samples(name))
    assert result.verified, result.failures
    assert 0 < result.bound <= result.claimed <= result.epsilon
    assert sum(bound for _, bound in result.terms) == pytest.approx(result.bound)
    assert result.seconds < 10


def _term(data, change):
    for reduction in data["reductions"]:
        for component in reduction["components"]:
            for term in component:
                change(term)


CERTIFICATE_EDITS = {
    "target": lambda c: c.update(target=c["target"].replace("-4*", "-3.9*")),
    "box": lambda c: c.update(box="0:1.01"),
    "smaller box": lambda c: c.update(box="0:0.99"),
    "tokens": lambda c: c.update(tokens="7"),
    "arithmetic": lambda c: c.update(arithmetic="float32"),
    "epsilon": lambda c: c.update(epsilon=c["total"] * 0.999),
    "total": lambda c: c.update(total=c["total"] * 0.9),
    "negative total": lambda c: c.update(total=-1.0),
    "nan total": lambda c: c.update(total=float("nan")),
    "latent_dimension": lambda c: c.update(latent_dimension=1),
    "route": lambda c: c.update(route="exact"),
    "assumptions": lambda c: c.update(assumptions=[]),
    "a term": lambda c: c["terms"][1].update(bound=c["terms"][1]["bound"] * 0.9),
    "a negative term": lambda c: c["terms"][2].update(bound=-c["terms"][2]["bound"]),
    "a term's kind": lambda c: c["terms"][1].update(kind="sampled"),
    "all of the claim": lambda c: [
        c.update(total=sum(t["bound"] * 0.5 for t in c["terms"])),
        [t.update(bound=t["bound"] * 0.5) for t in c["terms"]],
    ],
    "terms swapped": lambda c: [
        t.update(bound=b) for t, b in zip(c["terms"], [t["bound"] for t in c["terms"][::-1]], strict=True)
    ],
    "interpolation degree": lambda c: c["constants"]["kernels"][0].update(interpolation_degree=8),
    "a higher interpolation degree": lambda c: c["constants"]["kernels"][0].update(interpolation_degree=13),
    "rho": lambda c: c["constants"]["kernels"][0]["ellipses"][0].update(rho=1.5),
    "larger rho": lambda c: c["constants"]["kernels"][0]["ellipses"][1].update(rho=40.0),
    "maximum": lambda c: c["constants"]["kernels"][1]["ellipses"][0].update(maximum=1e3),
    "larger maximum": lambda c: c["constants"]["kernels"][1]["ellipses"][0].update(maximum=1e12),
    "remainder": lambda c: c["constants"]["kernels"][0].update(remainder=1e-12),
    "dropped": lambda c: c["constants"]["kernels"][0].update(dropped=1e-9),
    "range": lambda c: c["constants"]["kernels"][0].update(range=[0.5, 7.5]),
    "degree": lambda c: c["constants"]["kernels"][0].update(degree=3),
    "kernel order": lambda c: c["constants"]["kernels"].reverse(),
    "a kernel missing": lambda c: c["constants"]["kernels"].pop(),
    "an ellipse missing": lambda c: c["constants"]["kernels"][0]["ellipses"].pop(),
}


@pytest.mark.parametrize("edit", CERTIFICATE_EDITS)
def test_an_edited_certificate_fails(edit, saved):
    copy = saved("gauss")
    copy.edit("certificate", CERTIFICATE_EDITS[edit])
    if edit == "tokens":  # sums are not means when n is known: the network's expression is another one
        assert any("target" in failure for failure in check(copy.folder).failures)
    result = check(copy.folder)
    assert not result.verified
    assert result.failures


CONFIG_EDITS = {
    "expression": lambda c: c.update(expression=c["expression"].replace("-4*", "-5*", 1)),
    "centre": lambda c: c.update(centre=["1/2", "0.4999"]),
    "radius": lambda c: c.update(radius=["1/2", "0.4999"]),
    "zero radius": lambda c: c.update(radius=["1/2", "0"]),
    "fewer centres": lambda c: c.update(centre=["1/2"]),
    "arithmetic": lambda c: c.update(arithmetic="float32"),
    "group": lambda c: c.update(group=1),
    "a huge group": lambda c: c.update(group=2**30),
    "a feature of a channel": lambda c: c["channels"][0]["support"].pop(5),
    "a feature twice": lambda c: c["channels"][0]["support"].append(c["channels"][0]["support"][0]),
    "channel factor": lambda c: c["channels"][0].update(factor="exp(-4*(y[0] - 0.5)**2 + -3*(y[1] - 0.5)**2)"),
    "channel factor of x": lambda c: c["channels"][0].update(factor="x[0]"),
    "wide channel factor": lambda c: c["channels"][0].update(factor="y"),
    "kernel expression": lambda c: c["kernels"][0].update(expression="exp(7*(x[0] - 0.5)*(y[0] - 0.5))"),
    "kernel of another coordinate": lambda c: c["kernels"][0].update(expression=c["kernels"][1]["expression"]),
    "kernel coordinates": lambda c: c["kernels"][0].update(coordinates=[1]),
    "kernel degrees": lambda c: c["kernels"][0].update(x_degrees=[7]),
    "kernels swapped": lambda c: c["kernels"].reverse(),
    "a product without a kernel": lambda c: c["products"][0].update(kernels=[0]),
    "a product with a kernel twice": lambda c: c["products"][0].update(kernels=[0, 0]),
    "many features of a product": lambda c: c["products"][0].update(support=c["products"][0]["support"][:20]),
    "a product's feature twice": lambda c: c["products"][0]["support"].append([0, 0]),
    "a product's feature beyond": lambda c: c["products"][0]["support"].append([0, 9]),
    "own factor": lambda c: _term(c, lambda t: t.update(own="exp(-4*(x[0] - 0.5)**2)")),
    "own factor of one": lambda c: c["reductions"][0]["components"][0][0].update(own="1"),
    "own factor of y": lambda c: c["reductions"][0]["components"][0][0].update(own="mean(y)[0]"),
    "polynomial": lambda c: c["reductions"][0]["components"][0][0]["polynomial"][1].__setitem__(1, "0.51"),
    "polynomial by a little": lambda c: c["reductions"][0]["components"][0][0]["polynomial"][1].__setitem__(
        1, "50000000000000001/100000000000000000"
    ),
    "components swapped": lambda c: c["reductions"][0]["components"].reverse(),
    "a reduction missing": lambda c: c["reductions"].pop(),
    "reductions swapped": lambda c: [
        r.update(components=k)
        for r, k in zip(c["reductions"], [r["components"] for r in c["reductions"][::-1]], strict=True)
    ],
    "a reduction twice": lambda c: c["reductions"].append(c["reductions"][0]),
    "a term's channel": lambda c: _term(c, lambda t: t.update(channel=1)),
    "a term's product": lambda c: _term(c, lambda t: t.update(product=1)),
    "an extra channel": lambda c: c["channels"].append({"factor": "exp(y[0])", "support": [[0, 0]]}),
}


@pytest.mark.parametrize("edit", CONFIG_EDITS)
def test_an_edited_network_fails(edit, saved):
    copy = saved("gauss")
    copy.edit("config", CONFIG_EDITS[edit])
    result = check(copy.folder)
    assert not result.verified
    assert result.failures


WEIGHT_EDITS = {
    "a large coefficient": lambda w, e: w["coefficients.0"].__setitem__((0, 0), w["coefficients.0"][0, 0] + e),
    "a small coefficient": lambda w, e: w["coefficients.1"].__setitem__((8, 7), w["coefficients.1"][8, 7] - e),
    "kernels swapped with a sign": lambda w, e: w.update({"coefficients.0": w["coefficients.1"] * (1 + e)}),
    "a row": lambda w, e: w["coefficients.0"].__setitem__(3, 0.0),
    "a transposed sign": lambda w, e: w["coefficients.0"].__setitem__((1, 1), -w["coefficients.0"][1, 1]),
    "nan": lambda w, e: w["coefficients.0"].__setitem__((2, 2), np.nan),
    "infinity": lambda w, e: w["coefficients.0"].__setitem__((2, 2), np.inf),
    "an extra tensor": lambda w, e: w.update(bias=np.zeros(3)),
    "a missing tensor": lambda w, e: w.pop("coefficients.1"),
    "a shape": lambda w, e: w.update({"coefficients.0": w["coefficients.0"][:-1].copy()}),
    "a dtype": lambda w, e: w.update({"coefficients.0": w["coefficients.0"].astype(np.float32)}),
}


@pytest.mark.parametrize("edit", WEIGHT_EDITS)
def test_edited_weights_fail(edit, saved):
    copy = saved("gauss")
    epsilon = json.loads((copy.folder / "certificate.json").read_text())["epsilon"]
    copy.weights(lambda w: WEIGHT_EDITS[edit](w, 1e-2 * epsilon))
    result = check(copy.folder)
    assert not result.verified
    assert result.failures


def test_a_wrong_hash_alone_fails(saved):
    for field in ("weights_sha256", "config_sha256"):
        copy = saved("gravity")
        path = copy.folder / "certificate.json"
        data = json.loads(path.read_text())
        path.write_text(json.dumps(data | {field: "0" * 64}))
        result = check(copy.folder)
        assert not result.verified
        assert any(field in failure for failure in result.failures)


def test_all_reasons_are_given_at_once(saved):
    copy = saved("gravity")
    copy.edit("certificate", lambda c: c.update(latent_dimension=1, epsilon=1e-9, route="guess"))
    text = "\n".join(check(copy.folder).failures)
    assert all(word in text for word in ("latent_dimension", "epsilon", "route"))


def test_a_perturbation_within_the_claim_still_verifies(saved):
    copy = saved("gravity")
    copy.weights(lambda w: w["coefficients.0"].__setitem__((1, 2), w["coefficients.0"][1, 2] + 1e-9))
    assert check(copy.folder).verified


def worst_error(folder: Path, seed: int) -> float:
    """|f − N| over random tokens, corners, and clusters on corners with one token elsewhere; f in float64."""
    construction = load(folder)
    target, net = construction.target, construction.network
    dtype = torch.float64 if net.arithmetic == "float64" else torch.float32
    generator = torch.Generator().manual_seed(seed)
    low, high = (torch.tensor([float(b) for b in ends]) for ends in (target.box.lower, target.box.upper))
    worst = 0.0
    for n in (n for n in (1, 2, 3, 8, 17) if target.tokens.allows(n)):
        X = low + (high - low) * torch.rand(64, n, target.d, generator=generator, dtype=torch.float64)
        corners = low + (high - low) * torch.randint(0, 2, (64, n, target.d), generator=generator).double()
        clusters = corners[:, :1].expand(-1, n, -1).clone()
        clusters[:, 0] = X[:, 0]
        for tokens in (X, corners, clusters):
            rounded = tokens.to(dtype)
            rounded = rounded.clamp(low.to(dtype), high.to(dtype))
            inside = rounded[target.box.contains(rounded).all(-1)]
            if len(inside):
                worst = max(worst, float((target(inside.double()) - net(inside).double()).abs().max()))
    return worst


@pytest.mark.parametrize("name", ["gravity", "others", "softrank32", "nested", "gauss32", "sum_others"])
def test_the_recomputed_bound_holds_whatever_the_weights_are(name, saved):
    """Perturbed a little or a lot: |f − N| ≤ B', and so a verified claim is a true one."""
    rng = np.random.default_rng(5)
    verdicts = []
    for trial in range(6):
        copy = saved(name)
        size = 10.0 ** rng.uniform(-8, 1) * json.loads((copy.folder / "certificate.json").read_text())["epsilon"]

        def change(w, size=size):
            A = w["coefficients.0"]
            place = tuple(rng.integers(0, n) for n in A.shape)
            A[place] += A.dtype.type(rng.choice([-1, 1]) * size)

        copy.weights(change)
        result = check(copy.folder)
        verdicts.append(result.verified)
        observed = worst_error(copy.folder, trial)
        assert observed <= result.bound
        assert not result.verified or observed <= result.claimed
    assert any(verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_the_recomputed_bound_holds_for_many_weights(name, saved):
    rng = np.random.default_rng(11)
    for trial in range(20):
        copy = saved(name)
        size = 10.0 ** rng.uniform(-6, 2) * json.loads((copy.folder / "certificate.json").read_text())["epsilon"]

        def change(w, size=size):
            for A in w.values():
                A += (rng.standard_normal(A.shape) * (rng.random(A.shape) < 0.1) * size).astype(A.dtype)

        copy.weights(change)
        assert worst_error(copy.folder, trial) <= check(copy.folder).bound


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


FILES = ("certificate.json", "config.json", "model.safetensors")
DAMAGE = {
    "missing": lambda p: p.unlink(),
    "truncated": _truncate,
    "empty": lambda p: p.write_bytes(b""),
    "foreign": lambda p: p.write_bytes(b"\x89PNG\r\n" * 100),
    "a list": lambda p: p.write_text("[1, 2]"),
    "an object": lambda p: p.write_text("{}"),
    "long integers": lambda p: p.write_text('{"d": ' + "9" * 10_000 + "}"),
    "deep": lambda p: p.write_text("[" * 100_000),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_unreadable_files_are_format_errors(name, damage, saved):
    copy = saved("figure2")
    DAMAGE[damage](copy.folder / name)
    with pytest.raises(FileFormatError):
        check(copy.folder)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("certificate", "target", "mean(z)"),
        ("certificate", "target", 3),
        ("certificate", "box", "1:0"),
        ("certificate", "tokens", "many"),
        ("certificate", "d", 10**6),
        ("certificate", "d", "2"),
        ("certificate", "total", "small"),
        ("certificate", "terms", [3]),
        ("certificate", "terms", None),
        ("certificate", "constants", []),
        ("certificate", "version", 99),
        ("config", "group", "1024"),
        ("config", "centre", [0.5] * 4),
        ("config", "centre", ["1/0"] * 4),
        ("config", "channels", {}),
        ("config", "channels", [{"factor": "1", "support": [[-1, 0, 0, 0]]}]),
        ("config", "channels", [{"factor": "sum(", "support": []}]),
        ("config", "kernels", [{}]),
        ("config", "reductions", [{"reduction": "x", "components": []}]),
        ("config", "type", "Sumformer"),
        ("config", "extra", 1),
    ],
)
def test_malformed_fields_are_format_errors(file, key, value, saved):
    copy = saved("figure2")
    copy.edit(file, lambda data: data.update({key: value}))
    with pytest.raises(FileFormatError):
        check(copy.folder)

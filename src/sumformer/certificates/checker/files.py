"""The three files of a saved construction, read within bounds: a value of the right type, or a `FileFormatError`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.certificates.checker.network import Channel, Kernel, Network, Polynomial, Product, Reduction, Term
from sumformer.errors import FileFormatError, MissingDependencyError, SumformerError
from sumformer.targets.node import Node
from sumformer.targets.parser import parse
from sumformer.targets.tree import Reduce

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
MAX_JSON = 64 * 2**20
MAX_WEIGHTS = 512 * 2**20
MAX_D = 28  # two axes per coordinate, numpy has 64
MAX_DEGREE = 4096
MAX_ITEMS = 200_000
MAX_DIGITS = 5000
_KEYS = {
    "type",
    "expression",
    "d",
    "centre",
    "radius",
    "arithmetic",
    "group",
    "channels",
    "kernels",
    "products",
    "reductions",
}


def read_certificate(folder: Path) -> Certificate:
    path = folder / CERTIFICATE_FILE
    _check_size(path, MAX_JSON)
    try:
        certificate = Certificate.read(path)
    except FileFormatError:
        raise
    except (ValueError, TypeError, RecursionError) as error:  # an integer of 10,000 digits, say
        raise FileFormatError(path, f"is not a certificate ({error})") from error
    _check_certificate(path, certificate)
    return certificate


def _check_certificate(path: Path, c: Certificate) -> None:
    texts = (
        c.target,
        c.box,
        c.tokens,
        c.arithmetic,
        c.route,
        c.weights_sha256,
        c.config_sha256,
        c.architecture,
        c.norm,
    )
    if not all(isinstance(t, str) for t in (*texts, *c.assumptions)):
        raise FileFormatError(path, "expected strings in target, box, tokens, arithmetic, route, hashes, assumptions")
    if not (_is_int(c.d) and 1 <= c.d <= MAX_D and _is_int(c.latent_dimension)):
        raise FileFormatError(path, f"expected integers d (1 to {MAX_D}) and latent_dimension")
    numbers = [c.epsilon, c.total, *(t.bound for t in c.terms)]
    if not all(_is_number(v) for v in numbers):
        raise FileFormatError(path, "expected numbers in epsilon, total and the terms' bounds")
    if not all(isinstance(t.name, str) and isinstance(t.kind, str) for t in c.terms):
        raise FileFormatError(path, "expected a name and a kind in every term")
    if not isinstance(c.constants, dict) or not isinstance(c.constants.get("kernels", []), list):
        raise FileFormatError(path, "expected an object of constants with a list of kernels")


def read_network(folder: Path, d: int) -> Network:
    """config.json; `d` is what the certificate says."""
    path = folder / CONFIG_FILE
    _check_size(path, MAX_JSON)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return network_of(data, d)
    except SumformerError as error:
        raise FileFormatError(path, f"does not describe a network ({error})") from error
    except (OSError, ValueError, TypeError, KeyError, RecursionError, ZeroDivisionError, OverflowError) as error:
        raise FileFormatError(path, f"does not describe a network ({type(error).__name__}: {error})") from error


def network_of(data: Any, d: int) -> Network:
    """The network that a configuration describes."""
    if not isinstance(data, dict) or data.keys() != _KEYS or data["type"] != "ExpressionSumformer":
        raise ValueError(f"expected an ExpressionSumformer with the keys {', '.join(sorted(_KEYS))}")
    if data["d"] != d or not _is_int(data["d"]):
        raise ValueError(f"d is {data['d']!r}, the certificate says {d}")
    if data["arithmetic"] not in ("float64", "float32", "mixed"):
        raise ValueError(f"unknown arithmetic {data['arithmetic']!r}")
    return Network(
        expression=parse(data["expression"], d),
        d=d,
        centre=tuple(_fraction(v) for v in _items(data["centre"])),
        radius=tuple(_fraction(v) for v in _items(data["radius"])),
        arithmetic=data["arithmetic"],
        group=_integer(data["group"]),
        channels=tuple(_channel(c, d) for c in _items(data["channels"])),
        kernels=tuple(_kernel(k, d) for k in _items(data["kernels"])),
        products=tuple(_product(p) for p in _items(data["products"])),
        reductions=tuple(_reduction(r, d) for r in _items(data["reductions"])),
    )


def _channel(data: Any, d: int) -> Channel:
    _keys(data, {"factor", "support"})
    return Channel(parse(data["factor"], d, free_y=True), _indices(data["support"]))


def _kernel(data: Any, d: int) -> Kernel:
    _keys(data, {"expression", "coordinates", "x_degrees", "y_degrees"})
    coordinates, x, y = (_index(data[key]) for key in ("coordinates", "x_degrees", "y_degrees"))
    return Kernel(parse(data["expression"], d, free_y=True), coordinates, x, y)


def _product(data: Any) -> Product:
    _keys(data, {"kernels", "support"})
    return Product(_index(data["kernels"]), _indices(data["support"]))


def _reduction(data: Any, d: int) -> Reduction:
    _keys(data, {"reduction", "components"})
    node: Node = parse(data["reduction"], d)
    if not isinstance(node, Reduce):
        raise ValueError("a reduction is not one of sum, mean, sum_others, mean_others")
    return Reduction(node, tuple(tuple(_term(t, d) for t in _items(terms)) for terms in _items(data["components"])))


def _term(data: Any, d: int) -> Term:
    _keys(data, {"own", "channel", "polynomial", "product"})
    polynomial: Polynomial = tuple(
        (_index(pair[0]), _fraction(pair[1])) for pair in map(_pair, _items(data["polynomial"]))
    )
    return Term(parse(data["own"], d), _integer(data["channel"]), polynomial, _integer(data["product"]))


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of model.safetensors."""
    path = folder / WEIGHTS_FILE
    _check_size(path, MAX_WEIGHTS)
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingDependencyError("safetensors", "the certificate checker", "all") from None
    try:
        return dict(safetensors.numpy.load(path.read_bytes()))
    except Exception as error:  # the library's own error types, and whatever a foreign file provokes in it
        raise FileFormatError(path, f"is not readable ({error})") from error


def _check_size(path: Path, limit: int) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise FileFormatError(path, "no such file; expected a folder written by Construction.save") from None
    if size > limit:
        raise FileFormatError(path, f"has {size} bytes; the checker reads at most {limit}")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (_is_int(value) and abs(value) < 10**300)


def _integer(value: Any) -> int:
    if not _is_int(value) or abs(value) > 2**31:
        raise ValueError(f"expected an integer, got {value!r}")
    return int(value)


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > MAX_DIGITS or "e" in value.lower():
        raise ValueError("expected an exact number p/q as a string")
    return Fraction(value)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise ValueError(f"expected a list of at most {MAX_ITEMS} items")
    return value


def _index(value: Any) -> tuple[int, ...]:
    out = tuple(_integer(v) for v in _items(value))
    if any(not 0 <= v <= MAX_DEGREE for v in out):
        raise ValueError(f"expected integers from 0 to {MAX_DEGREE}")
    return out


def _indices(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(_index(v) for v in _items(value))


def _pair(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("expected pairs [multi-index, coefficient]")
    return value


def _keys(data: Any, keys: set[str]) -> None:
    if not isinstance(data, dict) or data.keys() != keys:
        raise ValueError(f"expected an object with the keys {', '.join(sorted(keys))}")

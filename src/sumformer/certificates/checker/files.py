"""The three files of a saved construction, read within bounds: a value of the right type, or a `FileFormatError`."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from sumformer.certificates.certificate import CERTIFICATE_FILE, MAX_COORDINATES, NOT_CLAIMED, Certificate
from sumformer.certificates.checker.json_values import (
    distinct,
    fraction,
    has_keys,
    integer,
    is_integer,
    is_number,
    items,
    multi_index,
    multi_indices,
    pair,
)
from sumformer.certificates.checker.network import Channel, Kernel, Network, Polynomial, Product, Reduction, Term
from sumformer.errors import FileFormatError, MissingDependencyError, SumformerError
from sumformer.targets.node import Node
from sumformer.targets.parser import parse
from sumformer.targets.tree import Reduce

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
MAX_JSON = 64 * 2**20
MAX_WEIGHTS = 512 * 2**20
Described = TypeVar("Described")
Tensors = dict[str, NDArray[Any]]
_STUMBLES = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
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


def read_certificate(folder: Path, most: int = MAX_COORDINATES) -> Certificate:
    """certificate.json, every field of its type; `most` bounds d."""
    path = folder / CERTIFICATE_FILE
    check_size(path, MAX_JSON)
    try:
        certificate = Certificate.read(path)
        _check_text(asdict(certificate))
    except FileFormatError:
        raise
    except (ValueError, TypeError, RecursionError) as error:  # an integer of 10,000 digits, say
        raise FileFormatError(path, f"is not a certificate ({error})") from error
    _check_certificate(path, certificate, most)
    return certificate


def _check_certificate(path: Path, c: Certificate, most: int) -> None:
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
    if not (is_integer(c.d) and 1 <= c.d <= most and is_integer(c.latent_dimension) and is_integer(c.version)):
        raise FileFormatError(path, f"expected integers d (1 to {most}), latent_dimension and version")
    numbers = [c.epsilon, c.total, *(t.bound for t in c.terms)]
    if not all(is_number(v) for v in numbers):
        raise FileFormatError(path, "expected numbers in epsilon, total and the terms' bounds")
    if not all(isinstance(t.name, str) and isinstance(t.kind, str) for t in c.terms):
        raise FileFormatError(path, "expected a name and a kind in every term")
    if c.not_claimed != NOT_CLAIMED:
        raise FileFormatError(path, f"not_claimed: remarks are {', '.join(NOT_CLAIMED)}, all else is claimed")
    if not isinstance(c.constants, dict) or not isinstance(c.constants.get("kernels", []), list):
        raise FileFormatError(path, "expected an object of constants with a list of kernels")


def read_described(folder: Path, what: str, make: Callable[[Any], Described]) -> Described:
    """`make` of what config.json holds; whatever it stumbles over is a `FileFormatError` that says so."""
    path = folder / CONFIG_FILE
    check_size(path, MAX_JSON)
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=distinct)
        _check_text(data)
        return make(data)
    except SumformerError as error:
        raise FileFormatError(path, f"does not describe {what} ({error})") from error
    except _STUMBLES as error:
        raise FileFormatError(path, f"does not describe {what} ({type(error).__name__}: {error})") from error


def _check_text(data: Any) -> None:
    """Every string can be written again: \\ud800 alone is half a character."""
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"a string holds {error.object[error.start]!r}, half a character") from None


def read_network(folder: Path, d: int) -> Network:
    """config.json; `d` is what the certificate says."""
    return read_described(folder, "a network", lambda data: network_of(data, d))


def network_of(data: Any, d: int) -> Network:
    """The network that a configuration describes."""
    check_network(data, d, "ExpressionSumformer", ("float64", "float32", "mixed"))
    return with_parts(
        data,
        d,
        channels=tuple(_channel(c, d) for c in items(data["channels"])),
        kernels=tuple(_kernel(k, d) for k in items(data["kernels"])),
        products=tuple(_product(p) for p in items(data["products"])),
    )


def check_network(data: Any, d: int, wanted: str, arithmetics: tuple[str, ...]) -> None:
    """A configuration of the type that is `wanted`, in one of the `arithmetics`, of tokens of width d."""
    kind = data.get("type") if isinstance(data, dict) else None
    if kind != wanted:
        raise ValueError(f"expected a network that `construct` builds, got one of type {kind!r}")
    has_keys(data, _KEYS)
    if data["d"] != d or not is_integer(data["d"]):
        raise ValueError(f"d is {data['d']!r}, the certificate says {d}")
    if data["arithmetic"] not in arithmetics:
        raise ValueError(f"unknown arithmetic {data['arithmetic']!r}")


def with_parts(
    data: Any, d: int, channels: tuple[Channel, ...], kernels: tuple[Kernel, ...], products: tuple[Product, ...]
) -> Network:
    """The rest of a configuration around the parts that its type has."""
    return Network(
        expression=parse(data["expression"], d),
        d=d,
        centre=tuple(fraction(v) for v in items(data["centre"])),
        radius=tuple(fraction(v) for v in items(data["radius"])),
        arithmetic=data["arithmetic"],
        group=integer(data["group"]),
        channels=channels,
        kernels=kernels,
        products=products,
        reductions=tuple(_reduction(r, d) for r in items(data["reductions"])),
    )


def _channel(data: Any, d: int) -> Channel:
    has_keys(data, {"factor", "support"})
    return Channel(parse(data["factor"], d, free_y=True), multi_indices(data["support"]))


def _kernel(data: Any, d: int) -> Kernel:
    has_keys(data, {"expression", "coordinates", "x_degrees", "y_degrees"})
    coordinates, x, y = (multi_index(data[key]) for key in ("coordinates", "x_degrees", "y_degrees"))
    return Kernel(parse(data["expression"], d, free_y=True), coordinates, x, y)


def _product(data: Any) -> Product:
    has_keys(data, {"kernels", "support"})
    return Product(multi_index(data["kernels"]), multi_indices(data["support"]))


def _reduction(data: Any, d: int) -> Reduction:
    has_keys(data, {"reduction", "components"})
    node: Node = parse(data["reduction"], d)
    if not isinstance(node, Reduce):
        raise ValueError("a reduction is not one of sum, mean, sum_others, mean_others")
    return Reduction(node, tuple(tuple(_term(t, d) for t in items(terms)) for terms in items(data["components"])))


def _term(data: Any, d: int) -> Term:
    has_keys(data, {"own", "channel", "polynomial", "product"})
    polynomial: Polynomial = tuple(
        (multi_index(entry[0]), fraction(entry[1])) for entry in map(pair, items(data["polynomial"]))
    )
    return Term(parse(data["own"], d), integer(data["channel"]), polynomial, integer(data["product"]))


def read_weights(folder: Path) -> Tensors:
    """Every tensor of model.safetensors."""
    path = folder / WEIGHTS_FILE
    check_size(path, MAX_WEIGHTS)
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingDependencyError("safetensors", "the certificate checker", "all") from None
    try:
        return dict(safetensors.numpy.load(path.read_bytes()))
    except Exception as error:  # the library's own error types, and whatever a foreign file provokes in it
        raise FileFormatError(path, f"is not readable ({error})") from error


def check_size(path: Path, limit: int) -> None:
    """A plain file, or a link to one, of at most `limit` bytes: a device or a pipe may never end."""
    try:
        found = path.stat()
    except OSError:
        raise FileFormatError(path, "no such file; `sumformer construct … --out DIR` writes such a folder") from None
    if not stat.S_ISREG(found.st_mode):
        raise FileFormatError(path, "is not a plain file")
    if found.st_size > limit:
        raise FileFormatError(path, f"has {found.st_size} bytes; the checker reads at most {limit}")

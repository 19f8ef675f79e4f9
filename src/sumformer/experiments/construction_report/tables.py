"""The network in tables: kernels K_g, channels b, reductions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from sumformer.experiments.report.markup import code, details, paragraph, table
from sumformer.experiments.report.numbers import nearest, rounded_up
from sumformer.targets import parse
from sumformer.theorems.alberti_2023.components import coordinates
from sumformer.theorems.constructed import Construction

MOST_PARTS, LINE = 24, 120  # descriptions, or characters, of a list that is printed


def tables(construction: Construction) -> list[str]:
    """What the network is made of, folded."""
    if not hasattr(construction.network, "channels"):
        constants = {name: value for name, value in construction.certificate.constants.items() if name != "why"}
        rows = [[escape(name), escape(value)] for name, value in constant_rows(constants)]
        return [details("Constants of the route", table(("name", "value"), rows))]
    return [
        details("Kernels: what is interpolated", kernels(construction)),
        details("Channels and reductions: what is summed", channels(construction), reductions(construction)),
    ]


def constant_rows(constants: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, level by level; what is too long for a line is counted, and stands in certificate.json."""
    for key, value in constants.items():
        name = f"{within}{key}"
        if isinstance(value, Mapping):
            yield from constant_rows(value, f"{name}: ")
        elif not isinstance(value, list | tuple):
            yield name, "none" if value is None else str(value)
        elif 0 < len(value) <= MOST_PARTS and all(isinstance(part, Mapping) for part in value):
            yield from constant_rows({str(k): part for k, part in enumerate(value, 1)}, f"{name} ")
        else:
            line = ", ".join(map(str, value)) or "none"
            yield name, line if len(line) <= LINE else f"{len(value)} entries, in certificate.json"


def kernels(construction: Construction) -> str:
    """A row per kernel, with the constants of the certificate."""
    constants = construction.certificate.constants.get("kernels")
    if not constants:
        return paragraph("None: nothing is interpolated.")
    if construction.certificate.route == "mesh":
        return _mesh_kernels(constants)
    head = ("kernel K", "coordinates", "degree", "interpolation degree", "ρ", "M", "range", "remainder", "dropped")
    note = paragraph(
        "ρ and M: |K| ≤ M when one variable runs over the Bernstein ellipse of parameter ρ and the others over the "
        "box; remainder: proved error of interpolation at the interpolation degree; dropped: proved error of cutting "
        "to the degree and rounding the coefficients. Remainder, dropped and M are rounded up.",
        "note",
    )
    return table(head, [_kernel(k, construction.target.d) for k in constants], range(2, 9)) + note


def _mesh_kernels(constants: Sequence[Mapping[str, Any]]) -> str:
    head = ("kernel K", "coordinates", "intervals", "width", "sums", "bounds", "range", "remainder", "dropped")
    note = paragraph(
        "width: the nodes that a token meets in every coordinate; sums: over pairs of nodes or by their frequencies; "
        "bounds: |K| ≤ M when one coordinate of x − y is complex, within δ of the differences of the mesh, or of a "
        "kernel with corners |∂K/∂x| ≤ L and |∂ log K/∂x| ≤ ℓ; remainder: proved error of interpolation; dropped: of "
        "rounded samples and places. Remainder, dropped, M, L and ℓ are rounded up.",
        "note",
    )
    rows = [
        [
            code(kernel["expression"]),
            ", ".join(str(s["coordinate"]) for s in (*kernel["strips"], *kernel["slants"])),
            " × ".join(map(str, kernel["intervals"])),
            str(kernel["width"]),
            kernel["sums"],
            _distinct([*map(_strip, kernel["strips"]), *map(_slant, kernel["slants"])]),
            f"[{nearest(kernel['range'][0])}, {nearest(kernel['range'][1])}]",
            _bound(kernel["remainder"]),
            _bound(kernel["dropped"]),
        ]
        for kernel in constants
    ]
    return table(head, rows, range(2, 9)) + note


def _strip(bound: Mapping[str, float]) -> str:
    return f"δ = {nearest(bound['reach'], 5)}, M = {rounded_up(bound['maximum'])}"


def _slant(bound: Mapping[str, float | None]) -> str:
    names = [("L", bound["slope"]), ("ℓ", bound["log_slope"])]
    return ", ".join(f"{name} = {rounded_up(value)}" for name, value in names if value is not None)


def _kernel(kernel: Mapping[str, Any], d: int) -> list[str]:
    places = sorted(coordinates(parse(kernel["expression"], d, free_y=True)))
    ellipses: Sequence[Mapping[str, Any]] = kernel["ellipses"]
    low, high = kernel["range"]
    return [
        code(kernel["expression"]),
        ", ".join(str(c) for c in places),
        str(kernel["degree"]),
        str(kernel["interpolation_degree"]),
        _distinct([nearest(e["rho"], 5) for e in ellipses]),
        _distinct([rounded_up(e["maximum"]) for e in ellipses]),
        f"[{nearest(low)}, {nearest(high)}]",
        _bound(kernel["remainder"]),
        _bound(kernel["dropped"]),
    ]


def channels(construction: Construction) -> str:
    """A row per factor b(y) with its Chebyshev features."""
    rows = []
    if construction.certificate.route == "mesh":
        factors = [[code(channel["factor"])] for channel in construction.network.channels]
        return table(("channel b(y), whose masses lie on a mesh",), factors)
    for channel in construction.network.channels:
        support = channel["support"]
        degrees = [max(column) for column in zip(*support, strict=True)]
        rows.append([code(channel["factor"]), str(len(support)), ", ".join(map(str, degrees)) or "–"])
    if not rows:
        return paragraph("No channel: no reduction needs a feature.")
    return table(("channel b(y)", "features b(y)·T_β(v)", "largest degree per coordinate"), rows, (1,))


def reductions(construction: Construction) -> str:
    """A row per reduction of the target (n cancelled where n is any)."""
    rows = [
        [code(r["reduction"]), str(len(r["components"])), str(sum(len(terms) for terms in r["components"]))]
        for r in construction.network.reductions
    ]
    return table(("reduction", "coordinates", "terms"), rows, (1, 2)) if rows else paragraph("No reduction.")


def _bound(value: float) -> str:
    return f'<span title="{escape(repr(value))}">{escape(rounded_up(value))}</span>'


def _distinct(texts: Sequence[str]) -> str:
    return escape(", ".join(dict.fromkeys(texts)))

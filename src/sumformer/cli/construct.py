"""`sumformer construct EXPRESSION --epsilon ε`: a network, its certificate, an attack on it, and a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sumformer.algebra.rounding import shown_up
from sumformer.certificates.attack import AttackResult
from sumformer.certificates.quadrature import Quadrature
from sumformer.cli.comparison import compare
from sumformer.cli.formula import described, formula_target
from sumformer.cli.output import Json, command, console, drawing, effort, messages, not_reached, print_json, shown
from sumformer.errors import CertificateError, InputError
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct as build
from sumformer.theorems.counted_sizes import attention_layers, compiled_size, parameters, size_in_words
from sumformer.theorems.saved_folder import REPORT_FILE, check_folder
from sumformer.theorems.verification import examine

Expression = Annotated[
    str, typer.Argument(help='The target, as "x - mean(y)"; see `sumformer targets`.', show_default=False)
]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The worst-case error allowed.")]
Dim = Annotated[int, typer.Option("--dim", "-d", help="Coordinates per token.")]
Tokens = Annotated[str, typer.Option("--tokens", "-n", help="How many tokens: 3, ..1000, 10..100, or any.")]
BoxOption = Annotated[str | None, typer.Option("--box", help="Domain, as -1:1 or 0:1,-2:2; default 0:1.")]
Positions = Annotated[bool, typer.Option("--positions", help="Let i and j be the places of x and y, 1 to n.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float64, float32, or mixed (float32 in and out, float64 inside).")]
Merges = Annotated[
    int, typer.Option("--merges", help="How deep sums over parts may be merged (in Python: summarise, +, apply).")
]
Route = Annotated[str | None, typer.Option("--route", help="Force one of exact, sums, mesh, symmetric, grid, cells.")]
As = Annotated[
    str, typer.Option("--as", help="sumformer, transformer, linformer, performer, …, or all of these four in a table.")
]
PreferOption = Annotated[
    str | None, typer.Option("--prefer", help="Of a compiled network: few layers (depth), units (width) or parameters.")
]
ActivationOption = Annotated[
    str | None, typer.Option("--activation", help="With --route grid: step (sup norm) or relu (d_p, sup off ramps).")
]
PatternOption = Annotated[
    str | None,
    typer.Option("--pattern", help="Of a sparse-transformer: window:1, strided:2, fixed:2, star:1, bigbird:1,1,1."),
]
NormP = Annotated[
    float | None, typer.Option("--norm-p", help="p of d_p: of a deep- or sparse-transformer, or --activation relu.")
]
Fused = Annotated[
    bool, typer.Option("--fused", help="Of a deep- or sparse-transformer: find look-up layers by search, same results.")
]
Projected = Annotated[int | None, typer.Option("--k", help="Of a linformer: rows k ≥ 1 of E and F.")]
CodeOption = Annotated[
    str | None,
    typer.Option(
        "--code", help="With --route grid: integer (d' = 1), lanes or syndrome; else the smallest in float64."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the network, certificate and report.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Skip report.html.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds, also of another target.")]


@command
def construct(
    expression: Expression,
    epsilon: Epsilon = 1e-3,
    dim: Dim = 1,
    tokens: Tokens = "any",
    box: BoxOption = None,
    positions: Positions = False,
    dtype: Dtype = "float64",
    merges: Merges = 0,
    route: Route = None,
    architecture: As = "sumformer",
    prefer: PreferOption = None,
    activation: ActivationOption = None,
    pattern: PatternOption = None,
    norm_p: NormP = None,
    fused: Fused = False,
    k: Projected = None,
    code: CodeOption = None,
    out: Out = None,
    no_report: NoReport = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Build a network within EPSILON of EXPRESSION for every input, with a proof of it."""
    f = formula_target(expression, n=tokens, d=dim, box=box, positions=positions)
    asked: dict[str, Any] = {"prefer": prefer, "code": code, "activation": activation, "pattern": pattern, "p": norm_p}
    asked |= {"fused": fused or None, "k": k}
    options = {name: value for name, value in asked.items() if value is not None}
    if architecture == "all":
        if merges:
            raise InputError("--merges is an option of a sumformer")
        compare(f, epsilon, route, dtype, options, out, overwrite, as_json)
        return
    if out is not None:
        check_folder(out, None if overwrite else f.source)  # before the work
    with messages.status("constructing …"):
        construction = build(
            f, epsilon, architecture=architecture, route=route, dtype=dtype, merges=merges, options=options
        )
    start = time.perf_counter()
    with messages.status("attacking …"):
        found, refuted = examine(construction, construction.certificate.total)
    spent = {"attack": time.perf_counter() - start}
    if refuted:
        raise CertificateError(
            f"the attack refutes the bound just computed; please report this target: {found.witness}"
        )
    if out is not None:
        construction.save(out)
        if not no_report and isinstance(found, AttackResult):
            from sumformer.experiments.construction_report import write_report

            start = time.perf_counter()
            with drawing(REPORT_FILE):
                write_report(construction, out / REPORT_FILE, found)
            spent["report"] = time.perf_counter() - start
    if as_json:
        print_json(summary(construction, found, out, spent))
    else:
        show(construction, found, out, spent)


def summary(
    construction: Construction, found: AttackResult | Quadrature, out: Path | None, spent: Mapping[str, float]
) -> dict[str, Any]:
    """What `--json` prints; `spent` are the seconds of what came after the construction."""
    certificate = construction.certificate
    return {
        **described(construction.target),
        "certified_target": certificate.target,
        "arithmetic": certificate.arithmetic,
        "route": certificate.route,
        "why": certificate.why,
        "passed_over": list(construction.passed_over),
        "architecture": certificate.architecture,
        "norm": certificate.norm,
        "latent_dimension": certificate.latent_dimension,
        "proof_latent_dimension": construction.proof_latent_dimension,
        "parameters": parameters(construction),
        "size": compiled_size(construction),
        "attention_layers": attention_layers(construction),
        "layers": certificate.constants.get("layers", []),
        "read_out_layers": certificate.constants.get("read_out_layers"),
        "epsilon": certificate.epsilon,
        "certified_error": certificate.total,
        "merges": certificate.merges,
        "terms": [{"name": t.name, "kind": t.kind, "bound": t.bound} for t in certificate.terms],
        "assumptions": list(certificate.assumptions),
        "observed_error": found.worst,
        "attack_not_reached": list(getattr(found, "not_reached", ())),
        "seconds": construction.seconds,
        **{f"{what}_seconds": seconds for what, seconds in spent.items()},
        "out": None if out is None else str(out),
    }


def show(
    construction: Construction, found: AttackResult | Quadrature, out: Path | None, spent: Mapping[str, float]
) -> None:
    """The report in the terminal; `spent` as in `summary`."""
    c = construction.certificate
    console.print(Text(f"{construction.target!r}", style="bold"))
    console.print(f"route {c.route}: {c.why}")
    for passed in construction.passed_over:
        console.print(f"not taken: {passed}", markup=False)
    console.print(f"{_width(construction)}, {size_in_words(construction)}, {c.arithmetic}")
    table = Table("error budget", "kind", "bound")
    for term in c.terms:
        table.add_row(term.name, term.kind, shown(term.bound))
    table.add_section()
    sure = "certified for every input" if c.p is None else f"certified: {c.norm}(f, N) is at most"
    table.add_row(sure, "", shown(c.total), style="bold")
    table.add_row("asked for (ε)", "", f"{c.epsilon:.6g}")
    sought = "worst found by attack" if c.p is None else f"{c.norm}(f, N) by quadrature"
    table.add_row(f"{sought} ({effort(found)})", "measured", f"{found.worst:.3g}")
    console.print(table)
    if missing := not_reached(found):
        console.print(missing, markup=False)
    if c.p is not None:
        for step in c.constants.get("layers", []):
            console.print(f"{step['step']}: {step['built']} layers; the theorem's {step['formula']} = {step['count']}")
        if "read_out_layers" in c.constants:
            console.print(
                f"read-out: {c.constants['read_out_layers']} layers cut to the range of f; the theorem has none"
            )
    if "sup_off_ramps" in c.constants:
        off, share = shown(c.constants["sup_off_ramps"]), shown_up(c.constants["ramp_share"], 2)
        console.print(f"sup |f − N| ≤ {off} off the ramps, on which at most {share} of all inputs have a token")
    if c.merges and c.route != "cells":
        console.print(f"certified for summaries of parts, too, merged up to {c.merges:,} deep")
    for assumption in c.assumptions:
        console.print(f"assumed: {assumption}")
    written = "" if out is None else f", written to {out}"
    after = "".join(f", {what} {seconds:.1f} s" for what, seconds in spent.items())
    console.print(f"constructed in {construction.seconds:.2f} s{after}{written}", markup=False)


def _width(construction: Construction) -> str:
    """What of a token is summed; a deep network sums nothing, and has numbers per token between its layers."""
    proof, size = construction.proof_latent_dimension, construction.certificate.latent_dimension
    if isinstance(construction.network, DeepTransformer):
        return f"width {size} (numbers per token between layers)"
    beside = f"= {proof}" if proof is not None else "grows with n"
    return f"latent dimension d' = {size} (the proof's C(n+d, d) − 1 {beside})"

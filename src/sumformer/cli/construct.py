"""`sumformer construct EXPRESSION --epsilon ε`: a network, its certificate, an attack on it, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sumformer.certificates.attack import AttackResult, attack, violation
from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.errors import CertificateError
from sumformer.targets import target as make_target
from sumformer.theorems.construction import Construction
from sumformer.theorems.construction import construct as build

Expression = Annotated[
    str, typer.Argument(help='The target, as "x - mean(y)"; see `sumformer targets`.', show_default=False)
]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The worst-case error allowed.")]
Dim = Annotated[int, typer.Option("--dim", "-d", help="Coordinates per token.")]
Tokens = Annotated[str, typer.Option("--tokens", "-n", help="How many tokens: 3, ..1000, or any.")]
BoxOption = Annotated[str | None, typer.Option("--box", help="Domain, as -1:1 or 0:1,-2:2; default 0:1.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float64, float32, or mixed (float32 in and out, float64 inside).")]
Route = Annotated[str | None, typer.Option("--route", help="Force a route: exact, sums, symmetric or grid.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the network, certificate and report.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Skip report.html.")]


@command
def construct(
    expression: Expression,
    epsilon: Epsilon = 1e-3,
    dim: Dim = 1,
    tokens: Tokens = "any",
    box: BoxOption = None,
    dtype: Dtype = "float64",
    route: Route = None,
    out: Out = None,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Build a linear-time network within EPSILON of EXPRESSION for every input, with a proof of it."""
    f = make_target(expression, n=tokens, d=dim, box=box)
    with messages.status("constructing …"):
        construction = build(f, epsilon, route=route, dtype=dtype)
    with messages.status("attacking …"):
        found = attack(construction.target, construction.network)
    total = construction.certificate.total
    if found.worst > total and violation(found, total)[0]:
        raise CertificateError(
            f"the attack refutes the bound just computed; please report this target: {found.witness}"
        )
    if out is not None:
        construction.save(out)
        if not no_report:
            from sumformer.experiments.construction_report import write_report

            with messages.status("drawing the report …"):
                write_report(construction, out / "report.html", found)
    if as_json:
        print_json(summary(construction, found, out))
    else:
        show(construction, found, out)


def summary(construction: Construction, found: AttackResult, out: Path | None) -> dict[str, Any]:
    """What `--json` prints."""
    certificate = construction.certificate
    return {
        "target": certificate.target,
        "dim": certificate.d,
        "box": certificate.box,
        "tokens": certificate.tokens,
        "arithmetic": certificate.arithmetic,
        "route": certificate.route,
        "why": why(construction),
        "passed_over": list(construction.passed_over),
        "architecture": certificate.architecture,
        "norm": certificate.norm,
        "latent_dimension": certificate.latent_dimension,
        "proof_latent_dimension": construction.proof_latent_dimension,
        "parameters": sum(p.numel() for p in construction.network.parameters()),
        "attention_layers": 0,
        "epsilon": certificate.epsilon,
        "certified_error": certificate.total,
        "terms": [{"name": t.name, "kind": t.kind, "bound": t.bound} for t in certificate.terms],
        "assumptions": list(certificate.assumptions),
        "observed_error": found.worst,
        "seconds": construction.seconds,
        "out": None if out is None else str(out),
    }


def why(construction: Construction) -> str:
    """The route in one sentence."""
    return str(construction.certificate.constants.get("why", ""))


def show(construction: Construction, found: AttackResult, out: Path | None) -> None:
    """The report in the terminal."""
    c = construction.certificate
    proof = construction.proof_latent_dimension
    console.print(Text(f"{construction.target!r}", style="bold"))
    console.print(f"route {c.route}: {why(construction)}")
    for passed in construction.passed_over:
        console.print(f"not taken: {passed}", markup=False)
    beside = f"the proof's C(n+d, d) − 1 = {proof}" if proof is not None else "the proof's C(n+d, d) − 1 grows with n"
    parameters = sum(p.numel() for p in construction.network.parameters())
    console.print(f"latent dimension d' = {c.latent_dimension} ({beside}), {parameters} parameters, {c.arithmetic}")
    table = Table("error budget", "kind", "bound")
    for term in c.terms:
        table.add_row(term.name, term.kind, f"{term.bound:.3g}")
    table.add_section()
    table.add_row("certified for every input", "", f"{c.total:.3g}", style="bold")
    table.add_row("asked for (ε)", "", f"{c.epsilon:.3g}")
    table.add_row(f"worst found by attack ({found.trials} trials)", "measured", f"{found.worst:.3g}")
    console.print(table)
    for assumption in c.assumptions:
        console.print(f"assumed: {assumption}")
    console.print(f"constructed in {construction.seconds:.2f} s" + (f", written to {out}" if out is not None else ""))

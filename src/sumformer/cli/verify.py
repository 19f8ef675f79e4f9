"""`sumformer verify DIR`: exit 0 verified, 1 not verified, 2 unreadable."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sumformer.certificates.certificate import CERTIFICATE_FILE
from sumformer.certificates.quadrature import Quadrature
from sumformer.cli.output import Json, command, console, effort, messages, not_reached, print_json, shown
from sumformer.errors import InputError
from sumformer.theorems.verification import Verdict
from sumformer.theorems.verification import verify as run

Directory = Annotated[Path, typer.Argument(help="A folder written by `sumformer construct --out`.", show_default=False)]
NoAttack = Annotated[bool, typer.Option("--no-attack", help="Only re-derive the proof.")]


@command
def verify(directory: Directory, no_attack: NoAttack = False, as_json: Json = False) -> int:
    """Re-derive a certificate from the saved weights, with code of its own, then try to break it."""
    held = sorted(directory.glob(f"*/{CERTIFICATE_FILE}"))
    if held and not (directory / CERTIFICATE_FILE).exists():
        raise InputError(f"{directory} holds no construction itself; give {' or '.join(str(p.parent) for p in held)}")
    with messages.status("verifying …"):
        verdict = run(directory, attack=not no_attack)
    if as_json:
        print_json(summary(verdict))
    else:
        show(verdict)
    return 0 if verdict.verified else 1


def summary(verdict: Verdict) -> dict[str, object]:
    """What `--json` prints."""
    proof, attack = verdict.proof, verdict.attack
    return {
        "verified": verdict.verified,
        "statement": verdict.certificate.statement,
        "given": taken_from_the_user(proof.assumptions),
        "recomputed_bound": proof.bound,
        "certified_error": proof.claimed,
        "epsilon": proof.epsilon,
        "terms": [{"name": name, "recomputed": bound} for name, bound in proof.terms],
        "failures": list(proof.failures),
        "assumptions": list(proof.assumptions),
        "observed_error": None if attack is None else attack.worst,
        "attack_not_reached": list(getattr(attack, "not_reached", ())),
        "refuted": verdict.refuted,
        "witness": str(attack.witness) if attack is not None and verdict.refuted else None,
        "seconds": verdict.seconds,
    }


def taken_from_the_user(assumptions: Iterable[str]) -> list[str]:
    """What is said of a function without a formula, and cannot be proved from the files."""
    return [text for text in assumptions if text.startswith(("modulus:", "equivariance:"))]


def show(verdict: Verdict) -> None:
    """The verdict in the terminal."""
    proof = verdict.proof
    console.print(Text(f"claimed: {verdict.certificate.statement}"))
    table = Table("term", "recomputed")
    for name, bound in proof.terms:
        table.add_row(name, shown(bound))
    table.add_section()
    table.add_row("recomputed in all", shown(proof.bound), style="bold")
    table.add_row("claimed", shown(proof.claimed))
    table.add_row("ε", f"{proof.epsilon:.6g}")
    if verdict.attack is not None:
        sought = "by quadrature" if isinstance(verdict.attack, Quadrature) else "worst found by attack"
        table.add_row(f"{sought} ({effort(verdict.attack)})", f"{verdict.attack.worst:.3g}")
    console.print(table)
    if missing := not_reached(verdict.attack):
        console.print(missing, markup=False)
    for assumption in proof.assumptions:
        unusual = assumption.startswith(("modulus:", "equivariance:", "not checked"))
        console.print(Text(f"assumed: {assumption}", style="yellow" if unusual else ""))
    for failure in proof.failures:
        console.print(Text("failed: ", style="red") + Text(failure))
    if verdict.refuted and verdict.attack is not None:
        console.print(Text("refuted by: ", style="red") + Text(str(verdict.attack.witness)))
    word = Text("verified", style="bold green") if verdict.verified else Text("NOT verified", style="bold red")
    names = " and ".join(text.partition(":")[0] for text in taken_from_the_user(proof.assumptions))
    given = f", given the {names} of the function, which are taken from you," if names and verdict.verified else ""
    console.print(word + Text(f"{given} in {verdict.seconds:.1f} s"))

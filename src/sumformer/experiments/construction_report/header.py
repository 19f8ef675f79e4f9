"""∀X ∈ boxⁿ: ‖f(X) − N(X)‖_∞ ≤ total ≤ ε, and all that belongs to the statement."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path

from sumformer.experiments.report.markup import code, definitions, paragraph
from sumformer.experiments.report.numbers import count, duration, nearest, rounded_up
from sumformer.targets.domain import Box, Tokens
from sumformer.theorems.constructed import Construction
from sumformer.theorems.counted_sizes import compiled_size, parameters, size_in_words

ARITHMETIC = {
    "float64": "float64",
    "float32": "float32",
    "mixed": "mixed: float32 in and out, float64 inside",
}


def header(construction: Construction, folder: Path) -> list[str]:
    """The target, the claim, the facts, the assumptions, how to check."""
    certificate = construction.certificate
    return [
        "<h1>Certified construction of</h1>",
        f'<p class="formula">f(X)ᵢ = {escape(certificate.target)}</p>',
        f'<p class="claim" id="claim">{statement(construction)}</p>',
        definitions(_facts(construction)),
        "<h3>Assumed</h3>",
        f"<ul>{''.join(f'<li>{escape(a)}</li>' for a in certificate.assumptions)}</ul>",
        "<h3>To verify</h3>",
        f"<p>{code(f'sumformer verify {shlex.quote(folder.resolve().name or str(folder))}')} computes the bound again "
        "from the files and fails if it exceeds the claim.</p>",
    ]


def statement(construction: Construction) -> str:
    """The sentence that is certified; the total is rounded up."""
    certificate, target = construction.certificate, construction.target
    return (
        f"For {_tokens(target.tokens)} and every X in {_box(target.input_box)}: "
        f"‖f(X) − N(X)‖<sub>∞</sub> ≤ <strong>{escape(rounded_up(certificate.total))}</strong> "
        f"≤ ε = {escape(nearest(certificate.epsilon, 6))}"
    )


def _facts(construction: Construction) -> list[tuple[str, str]]:
    from sumformer import __version__

    certificate, target = construction.certificate, construction.target
    proof, box = construction.proof_latent_dimension, target.input_box
    beside = (
        "the proof's C(n+d, d) − 1 grows with n" if proof is None else f"the proof's C(n+d, d) − 1 = {_large(proof)}"
    )
    facts = [
        ("Route", f"<strong>{escape(certificate.route)}</strong>: {escape(certificate.why)}"),
        ("Latent dimension", f"d' = <strong>{count(certificate.latent_dimension)}</strong> ({escape(beside)})"),
        ("Parameters", count(parameters(construction))),
        *([] if compiled_size(construction) is None else [("Size", escape(size_in_words(construction)))]),
        ("Arithmetic", escape(ARITHMETIC.get(certificate.arithmetic, certificate.arithmetic))),
        ("Tokens", f"each in {_box(box, power='')}, d = {box.d}; {escape(_count_range(target.tokens))}"),
        ("Output", f"{target.width} per token"),
    ]
    if construction.seconds > 0:
        facts.append(("Constructed in", duration(construction.seconds)))
    facts.append(("Made with", f"sumformer {escape(__version__)}"))
    return facts


def _tokens(tokens: Tokens) -> str:
    return f"n = {count(tokens.minimum)}" if tokens.exact else f"every n, {escape(_count_range(tokens))},"


def _count_range(tokens: Tokens) -> str:
    if tokens.exact:
        return f"n = {count(tokens.minimum)}"
    return f"{count(tokens.minimum)} ≤ n ≤ {count(tokens.maximum)}"


def _box(box: Box, power: str = "n") -> str:
    """([0,1]²)ⁿ with the exponents set high."""
    base, _, d = box.formula().partition("^")
    inner = escape(base) + (f"<sup>{escape(d)}</sup>" if d else "")
    if not power:
        return inner
    bracketed = f"({inner})" if box.d > 1 else inner
    return f"{bracketed}<sup>{escape(power)}</sup>"


def _large(number: int) -> str:
    """Whole where it can be read."""
    return count(number) if number < 10**12 else f"about 10^{len(str(number)) - 1}"


def broken(text: str) -> str:
    """Something contradicts the certificate."""
    return paragraph(text, "bad")

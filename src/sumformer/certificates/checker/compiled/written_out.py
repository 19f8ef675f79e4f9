"""Forms with named numbers replaced by what they stand for: where a is ½ + ½m, a·b is ½b + ½m·b."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sumformer.certificates.checker.compiled.atoms import Atoms, Terms, add
from sumformer.certificates.checker.compiled.element import Element


def meanings(pairs: Iterable[tuple[Element, Element]], atoms: Atoms) -> dict[int, Terms]:
    """From (name, value), those first that others are made of: by the name's number, where the value is exact."""
    out: dict[int, Terms] = {}
    for name, value in pairs:
        ((_, ((number, _),), _),) = name.terms
        if not value.error:
            out.setdefault(number, written_out(value.terms, out, atoms))
    return out


def written_out(terms: Terms, meaning: Mapping[int, Terms], atoms: Atoms) -> Terms:
    """Names in negative powers stay."""
    out: Terms = {}
    for (alpha, powers, exponent), c in terms.items():
        kept = tuple(p for p in powers if p[0] not in meaning or p[1] < 0)
        part: Terms = {(alpha, kept, exponent): c}
        for number, power in powers:
            for _ in range(power if number in meaning else 0):
                part = atoms.multiply(part, meaning[number])
        out = add(out, part)
    return out


def apart(a: Terms, b: Terms, meaning: Mapping[int, Terms], atoms: Atoms) -> float:
    """The distance of two forms, or of what they are written out."""
    return min(atoms.distance(a, b), atoms.distance(*(written_out(terms, meaning, atoms) for terms in (a, b))))

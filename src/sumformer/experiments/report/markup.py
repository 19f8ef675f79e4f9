"""Pieces of HTML; every text that comes from outside goes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sumformer.experiments.report.drawing import Picture

STYLE = """
:root { color-scheme: light dark; --ink: #1d2228; --soft: #5a636e; --line: #d8dde3; --page: #ffffff; --card: #f5f7f9;
  --accent: #0b5cad; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3adb8; --line: #3a424b; --page: #15191e; --card: #1e242b; --accent: #7db7f0;
    --bad: #ff8a80 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem 1.1rem 4rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
h1 { font-size: 1.05rem; font-weight: 600; color: var(--soft); margin: 1rem 0 0.4rem }
h2 { font-size: 1.2rem; margin: 2.4rem 0 0.6rem; padding-top: 0.8rem; border-top: 1px solid var(--line) }
h3 { font-size: 1rem; font-weight: 600; margin: 1.2rem 0 0.4rem }
p, li { max-width: 46rem }
code, pre, .formula { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace }
code { font-size: 0.9em; overflow-wrap: anywhere }
.formula { font-size: 1.25rem; line-height: 1.4; overflow-wrap: anywhere; margin: 0 0 1rem }
.claim { background: var(--card); border-left: 4px solid var(--accent); border-radius: 6px; padding: 0.8rem 1rem;
  font-size: 1.08rem; max-width: none }
.bad { background: var(--card); border-left: 4px solid var(--bad); border-radius: 6px; padding: 0.8rem 1rem;
  color: var(--bad); font-weight: 600; max-width: none }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0.3rem 1.1rem }
dt { color: var(--soft) }
dd { margin: 0 }
.pictures { display: flex; flex-wrap: wrap; gap: 0.8rem; align-items: flex-start }
figure { margin: 0; flex: 0 1 auto; min-width: 0; background: #ffffff; border: 1px solid var(--line);
  border-radius: 8px; padding: 11px }
figure img { display: block; max-width: 100%; height: auto }
figcaption { color: #444c55; font-size: 0.85rem; overflow-wrap: anywhere; margin-top: 0.3rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { color: var(--soft); font-weight: 600 }
th { text-align: left }
th.number, td.number { text-align: right }
td.number { white-space: nowrap }
details { margin: 0.8rem 0 }
summary { cursor: pointer; color: var(--accent) }
pre { background: var(--card); border-radius: 6px; padding: 0.8rem; overflow-x: auto; font-size: 0.82rem }
.note { color: var(--soft); font-size: 0.92rem }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0 }
  dd { margin-bottom: 0.5rem }
  .formula { font-size: 1.05rem }
}
@media print { details { display: block } }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, body: Iterable[str]) -> str:
    """A whole page that loads nothing."""
    head = (
        f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{chr(10).join(body)}\n</body>\n</html>\n'
    )


def section(identifier: str, title: str, *parts: str) -> str:
    """A part of the page with a heading."""
    return f'<section id="{escape(identifier)}">\n<h2>{escape(title)}</h2>\n{chr(10).join(parts)}\n</section>'


def paragraph(text: str, kind: str = "") -> str:
    """Plain text."""
    attribute = f' class="{escape(kind)}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"


def code(text: str) -> str:
    """An expression or a command."""
    return f"<code>{escape(text)}</code>"


def gallery(pictures: Iterable[Picture]) -> str:
    """Pictures side by side where there is room."""
    return f'<div class="pictures">{"".join(p.html() for p in pictures)}</div>'


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Name and value; values are HTML already."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in pairs)}</dl>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Cells are HTML already; the columns in `numbers` are set flush right."""
    right = set(numbers)
    top = "".join(f"<th{' class=number' * (i in right)}>{escape(name)}</th>" for i, name in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{' class=number' * (i in right)}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def details(title: str, *parts: str) -> str:
    """Folded away until asked for."""
    return f"<details><summary>{escape(title)}</summary>\n{chr(10).join(parts)}\n</details>"

"""`sumformer targets`: the gallery, what each target means, and what each route can do with it."""

from __future__ import annotations

from rich.text import Text

from sumformer.cli.output import Json, command, console, print_json
from sumformer.targets.gallery import GALLERY, Entry

_ROUTES = {
    "exact": "route exact: rounding only",
    "sums": "route sums: certified, linear in n",
    "lipschitz": "route cells, for any n; route grid where n is small, as --tokens 3",
}


@command
def targets(as_json: Json = False) -> None:
    """The gallery of targets: meaning, class, what the routes can do."""
    rows = [
        {
            "name": entry.name,
            "expression": entry.source_for(entry.d),
            "dim": entry.d,
            "tokens": entry.tokens,
            "class": entry.kind,
            "routes": _ROUTES[entry.kind],
            "meaning": entry.meaning,
            "command": _command(entry),
        }
        for entry in GALLERY.values()
    ]
    if as_json:
        print_json({"targets": rows})
        return
    for row in rows:
        console.print(Text(f"{row['name']}", style="bold") + Text(f"  {row['meaning']}"))
        console.print(f"    {row['expression']}", markup=False, soft_wrap=True)  # whole, to be copied
        console.print(f"    --dim {row['dim']} --tokens {row['tokens']}, class {row['class']}", markup=False)
        console.print(f"    {row['command']}", markup=False, soft_wrap=True)
    console.print("\nWhat every route can do for one: the command under it. By class:")
    for kind, text in _ROUTES.items():
        console.print(f"{kind}: {text}")


def _command(entry: Entry) -> str:
    """What says what every route can do: of a maximum, for 3 tokens, where a grid can be tried too."""
    tokens = "3" if entry.kind == "lipschitz" else entry.tokens
    return f"sumformer routes '{entry.source_for(entry.d)}' --dim {entry.d} --tokens {tokens}"

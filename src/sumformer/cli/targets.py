"""`sumformer targets`: the gallery, what each target means, and what each route can do with it."""

from __future__ import annotations

from rich.text import Text

from sumformer.cli.output import Json, command, console, print_json
from sumformer.targets.gallery import GALLERY

_ROUTES = {
    "exact": "route exact: rounding only",
    "sums": "route sums: certified, linear in n",
    "lipschitz": "route sums where it is made of sums; max over tokens by route grid, where n is given",
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
    for kind, text in _ROUTES.items():
        console.print(f"{kind}: {text}")

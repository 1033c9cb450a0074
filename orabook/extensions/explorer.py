"""Things to play with: calculator, explorer, gap game and slider, on pages that ask for them.

A page asks by ``:::{div} explorer``, or another key of ``SCRIPTS``; the content of the block is for
readers without JavaScript, and on paper. Plotly comes from its Python package. All of it lies
next to the page in files that a browser also reads without a server.
"""

import csv
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes

from orabook.experiments import REPORTED
from orabook.figures.style import CYCLE, ORANGE
from orabook.place import BOOK

__all__ = ["load", "put_into", "setup", "table"]

TABLE = BOOK / "data" / "explorer.csv"

#: The names of the ways of auditing, in the order of their colours.
WAYS = {
    "staying": "stay on their coordinate (as in the paper)",
    "hopping": "hop to another coordinate in each step",
    "one-way": "stay, and the guesser is told the coins that it will not guess (one-way feedback)",
}

PLOTLY = "plotly.min.js"
DATA = "explorer-data.js"
#: Scripts of each thing to play with, in their order, by the class of its block.
SCRIPTS = {
    "explorer": (PLOTLY, DATA, "explorer.js"),
    "gap-game": ("game.js",),
    "calculator": ("bounds.js", "calculator.js"),
}


def table() -> dict:
    """The numbers as the page uses them: [bound, its standard error, accuracy] of each point.

    >>> sorted(table())[:4]
    ['colours', 'epsilon', 'k', 'methods']
    """
    with TABLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    axes = {name: sorted({float(row[name]) for row in rows}) for name in ("epsilon", "x", "k")}
    means = [[x, *mean] for x, mean in REPORTED.items()]
    points = {}
    for row in rows:
        numbers = [float(row[name]) for name in ("bound", "bound_se", "accuracy")]
        points[f"{row['method']} {float(row['epsilon']):g} {row['x']} {row['k']}"] = numbers
    return {
        **axes,
        "methods": WAYS,
        "colours": {**dict(zip(WAYS, CYCLE, strict=False)), "quoted": ORANGE},
        "trials": {row["method"]: int(row["trials"]) for row in rows},
        # Two means in Section 6.2 of the paper: elements per coordinate, mean, ±.
        "quoted": {"epsilon": 2, "k": 100, "method": "staying", "means": means},
        "points": points,
    }


def put_into(folder: Path) -> None:
    """Put Plotly and the numbers as files for a browser into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (package,) = find_spec("plotly").submodule_search_locations
    shutil.copyfile(Path(package) / "package_data" / PLOTLY, folder / PLOTLY)
    numbers = json.dumps(table(), ensure_ascii=False, separators=(",", ":"))
    (folder / DATA).write_text(f"window.explorerData = {numbers};\n", encoding="utf-8")


def load(app, pagename, templatename, context, doctree) -> None:
    """Load scripts and style sheets on the pages that ask for them, and on no other."""
    boxes = doctree.findall(nodes.container) if doctree else ()
    classes = {name for box in boxes for name in box["classes"]}
    asked = [name for name in SCRIPTS if name in classes]
    scripts = dict.fromkeys(script for name in asked for script in SCRIPTS[name])
    if DATA in scripts:
        put_into(Path(app.outdir) / "_static")
    for script in scripts:
        app.add_js_file(script, loading_method="defer")
    for sheet in {"calculator" if name == "calculator" else "explorer" for name in asked}:
        app.add_css_file(f"{sheet}.css")


def setup(app) -> dict:
    app.connect("html-page-context", load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Chapters that need PyTorch are shown with their committed outputs where it is not installed.

They are not executed then, and the numbers in their prose are those that were left in the metadata
of their cells when they were.
"""

import json
import re
from importlib.util import find_spec
from pathlib import Path

from oralib.runs import prose

BOOK = Path(__file__).parent.parent


def is_missing() -> bool:
    return any(find_spec(name) is None for name in ("torch", "opacus", "sklearn"))


def needs_torch(path: Path) -> bool:
    """Whether a chapter has real trainings."""
    return path.suffix == ".ipynb" and "oralib.trainings" in path.read_text(encoding="utf-8")


def leave_out(app, config) -> None:
    if is_missing():
        left_out = [path.name for path in BOOK.glob("*.ipynb") if needs_torch(path)]
        config.nb_execution_excludepatterns = [*config.nb_execution_excludepatterns, *left_out]


def fill_in(app, docname: str, content: list[str]) -> None:
    """Put the committed numbers into the prose."""
    path = Path(app.srcdir) / f"{docname}.ipynb"
    if is_missing() and path.exists() and needs_torch(path):
        notebook = json.loads(content[0])
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = filled(cell)
        content[0] = json.dumps(notebook)


def filled(cell: dict) -> str:
    """The source of a markdown cell with values for its expressions.

    >>> result = {"data": {"text/plain": "'0.62'"}}
    >>> told = {"user_expressions": [{"expression": "x", "result": result}]}
    >>> filled({"source": ["a {eval}`x`"], "metadata": told})
    'a 0.62'
    """
    told = {
        entry["expression"]: prose.text_of(entry["result"])
        for entry in cell["metadata"].get(prose.SECTION, [])
    }
    return re.sub(
        r"\{eval\}`([^`]*)`",
        lambda role: told[role[1].replace("\n", " ").strip()],
        "".join(cell["source"]),
    )


def setup(app) -> dict:
    app.connect("config-inited", leave_out)
    app.connect("source-read", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

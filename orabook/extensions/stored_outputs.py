"""Chapters that need PyTorch or JAX show their committed outputs where these are missing.

They are not executed then, and the numbers in their prose are those that their last execution left
in the metadata of the notebook (``orabook.builder.execute``).
"""

import json
from importlib.util import find_spec
from pathlib import Path

from orabook.place import BOOK
from orabook.prose import filled

__all__ = ["NEEDS", "NUMBERS", "chapters", "extras", "fill_in", "leave_out", "missing", "setup"]

#: The extras of oralib for real trainings: an import of chapters that need them, and packages.
NEEDS = {
    "torch": ("from orabook.trainings", ("torch", "opacus", "sklearn")),
    "jax": ("from jax_privacy", ("jax", "jax_privacy")),
}
#: The section of the numbers in prose in the metadata of a chapter.
NUMBERS = "numbers_in_prose"


def extras(path: Path) -> list[str]:
    """The extras of oralib that a chapter needs for its real trainings."""
    text = path.read_text(encoding="utf-8") if path.suffix == ".ipynb" else ""
    return [extra for extra, (statement, _) in NEEDS.items() if statement in text]


def missing(path: Path) -> list[str]:
    """The packages that a chapter needs for its real trainings, and that are not installed."""
    packages = [name for extra in extras(path) for name in NEEDS[extra][1]]
    return [name for name in packages if find_spec(name) is None]


def chapters() -> list[Path]:
    """The chapters that cannot be executed here."""
    return [path for path in sorted(BOOK.glob("[!.]*.ipynb")) if missing(path)]


def leave_out(app, config) -> None:
    """Keep MyST-NB from executing the chapters that cannot be executed."""
    left_out = [path.name for path in chapters()]
    config.nb_execution_excludepatterns = [*config.nb_execution_excludepatterns, *left_out]


def fill_in(app, docname: str, content: list[str]) -> None:
    """Put the committed numbers into the prose."""
    path = Path(app.srcdir) / f"{docname}.ipynb"
    if path.exists() and missing(path):
        notebook = json.loads(content[0])
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = filled("".join(cell["source"]), notebook["metadata"][NUMBERS])
        content[0] = json.dumps(notebook)


def setup(app) -> dict:
    app.connect("config-inited", leave_out)
    app.connect("source-read", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""What is known about a page while it is made: its numbers, labels and citations."""

# mypy: disable-error-code="import-untyped"

import contextlib
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes

from oralib.runs import prose
from oralib.runs.page.works import read_works


class Page:
    """What is known about a page while it is made.

    Attributes
    ----------
    values : texts of the numbers in prose, by expression.
    counts : how many theorems, figures, ... there are so far.
    labels : what a label stands for: the id in the page, and the text of a reference to it.
    cited : keys of works, in the order of their first citation.
    """

    def __init__(self, notebook: Any, name: str, folder: Path | None) -> None:
        self.notebook = notebook
        self.name = name
        self.folder = folder
        self.values = {
            entry["expression"]: prose.text_of(entry["result"])
            for cell in notebook.cells
            for entry in cell.metadata.get(prose.SECTION, [])
        }
        self.counts: Counter[str] = Counter()
        self.labels: dict[str, tuple[str, str]] = {}
        self.cited: list[str] = []

    def next_number(self, kind: str) -> int:
        self.counts[kind] += 1
        return self.counts[kind]

    def add_label(self, label: str, node: nodes.Element, text: str) -> None:
        """Let references to this label lead to the node, and read as this text."""
        if label:
            place = nodes.make_id(label)
            node["ids"] = [place, *(other for other in node["ids"] if other != place)]
            self.labels[label] = (place, text)

    @cached_property
    def works(self) -> Any:
        """Entries of the bibliography beside the chapter, by key."""
        return {} if self.folder is None else read_works(self.folder / "references.bib")

    @cached_property
    def neighbours(self) -> dict[str, list[Any]]:
        """The cells of the other chapters in the folder."""
        paths = [] if self.folder is None else sorted(self.folder.glob("*.ipynb"))
        found = {}
        for path in paths:
            with contextlib.suppress(Exception):  # of files that are no notebooks
                if path.is_file():  # and no pipe
                    cells = nbformat.read(path, 4).cells
                    found[path.stem] = [cell for cell in cells if isinstance(cell.source, str)]
        return found

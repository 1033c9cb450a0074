"""Captions of figures: a figure without a picture, in the Markdown right below the cell that draws.

JupyterLab shows and numbers them as they are. MyST-NB wants caption and name in the metadata of the
code cell, so they are moved there when a page is read.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["move_captions", "read_captions", "setup"]

_CAPTION = re.compile(r":::\{figure\}\n:label: (\S+)\n(.*?)\n:::\s*", re.DOTALL)


def move_captions(cells: list[Any]) -> None:
    """Move each caption from the head of a Markdown cell to the code cell above it.

    >>> words = ":::{figure}\\n:label: fig-a\\nA line.\\n:::\\n\\nWords."
    >>> cells = [{"cell_type": "code", "source": "draw()", "metadata": {}}]
    >>> cells += [{"cell_type": "markdown", "source": words}]
    >>> move_captions(cells)
    >>> cells[0]["metadata"]["mystnb"]["figure"], cells[1]["source"]
    ({'caption': 'A line.', 'name': 'fig-a'}, 'Words.')
    """
    for above, cell in pairwise(cells):
        if above["cell_type"] != "code" or cell["cell_type"] != "markdown":
            continue
        source = "".join(cell["source"])
        caption = _CAPTION.match(source)
        if caption:
            settings = above["metadata"].setdefault("mystnb", {})
            settings["figure"] = {"caption": caption[2], "name": caption[1]}
            cell["source"] = source[caption.end() :]


def read_captions(app, docname: str, content: list[str]) -> None:
    """Move the captions of a notebook when it is read."""
    if (Path(app.srcdir) / f"{docname}.ipynb").exists():
        notebook = json.loads(content[0])
        move_captions(notebook["cells"])
        content[0] = json.dumps(notebook)


def setup(app) -> dict:
    app.connect("source-read", read_captions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
